# SPDX-License-Identifier: Apache-2.0
"""What torchrun is as a script: pip writes the same into an environment's bin."""

import sys

from torch.distributed.run import main

if __name__ == "__main__":
    sys.exit(main())
