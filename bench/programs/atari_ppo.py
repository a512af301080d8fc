# SPDX-License-Identifier: Apache-2.0
"""stable-baselines3: PPO with its convolutional policy on pictures of Atari's size, 8 environments."""

import gymnasium
import numpy
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


class Noise(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 4), numpy.uint8)
    action_space = gymnasium.spaces.Discrete(6)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 200
        return self.observation_space.sample(), {}

    def step(self, action):
        self.left -= 1
        return self.observation_space.sample(), 1.0, self.left == 0, False, {}


model = PPO("CnnPolicy", make_vec_env(Noise, n_envs=8), n_steps=128, batch_size=256, n_epochs=4, device="cuda", verbose=1)
model.learn(4096)
model.save("ppo")
