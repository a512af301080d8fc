# SPDX-License-Identifier: Apache-2.0
"""Each sensor of the hook fails alone, and none fails on a thread that has no frame of Python's below: autograd's, gloo's."""

import sys

import pytest

FORKED = True  # ../fork_servers.py

PROGRAM = """
    import _thread, ctypes, sys, types, torch, fake_cuda, torch.utils.data, torch._dynamo
    fake_cuda.start()
    guard, state = sys.modules["_tonnage_guest.guard"], sys.modules["_tonnage_guest.state"].state
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.ones(2, 4, requires_grad=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    iterator = iter(torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2))
    events = sys.modules["_tonnage_guest.events"]
    batch = events.Batch(iterator, True, sys._getframe(), x, None)
    error = RuntimeError("words")
    warning = type("W", (), {"message": UserWarning("To copy construct from a tensor, torch says"), "category": UserWarning,
                             "filename": "a.py", "lineno": 1, "file": None, "line": None, "source": None})

    piece = type("P", (), {"recomputed": {0: {}}, "storage": {}})()

    ARGUMENTS = {
        "begin": (), "end": (), "_note": None, "_compiled_begins_at": (None,), "_compiled_ends_at": (None,),
        "_registered": (net, "weight", x), "_copied": (net,), "_hand_over": (False,), "_update_begins": (optimizer, (), {}),
        "_update_ended": (optimizer, (), {}), "_ask_for_rest": (None, None),
        "_observed": (0, 1000, 5, None), "_uncaught_in_thread": (error,), "_test_failed": (error,), "_begins": ((net(x),), ()),
        "_ended": (), "_constructed": (optimizer,), "_count_updates": (optimizer, None), "_count_passes": ((x,), {}, None), "call_ended": ((x,), {}, None), "call_made": (net, net(x), None),
        "_used": (sys.modules["_tonnage_guest.unused"]._Graph(0, 1, 0, True, (), 2, True),),
        "_freed": (sys.modules["_tonnage_guest.unused"]._Graph(0, 1, 0, True, (), 2, True),),
        "_fetched": (iterator, True, x), "_fill": (torch.ones(2),), "_zeroes": (optimizer,), "_pins": (x,),
        "_warned": (warning,), "_needs_none": (torch.utils.data.DataLoader([1]),),
        "_entered": (torch.autocast("cpu"),), "_asked": (net,), "_asked_by_train": (net,), "_put_into": (net, "0", net[0]), "_buffer_registered": (net, "x", x),
        "_gradients_stay_whole": (types.SimpleNamespace(reduce_grads=False, fsdp_params=[types.SimpleNamespace(unsharded_accumulated_grad=x)]),),
        "_group_is_whole": (types.SimpleNamespace(fsdp_params=[]),), "_flat_is_whole": (types.SimpleNamespace(world_size=1),),
        "_buffer_is_there": (types.SimpleNamespace(world_size=2, partitions=[x, x]),),
        "_gradients_are_whole": (types.SimpleNamespace(bit16_groups=[[types.SimpleNamespace(grad=x, grad_accum=None)]]),),
        "_parameters_are_whole": (types.SimpleNamespace(world_size=2, params=[net[0].weight]),),
        "_parameter_is_whole": (types.SimpleNamespace(_AllGatherHandle__param=types.SimpleNamespace(
            ds_zero_partition_world_size=2, data=x)),),
        "_frame_is_made": (piece,), "_store_is_made": (piece,), "_is_there_again": (piece,),
        # recorders and policy, by the event
        "call_began": (net, (x,), {}, None), "update_began": (optimizer, None), "update_ended": (optimizer, None), "waited": (0.0,),
        "optimizer_made": (optimizer,), "training_began": (), "restart": (), "went_on": ("optimizer",),
        "backward_began": (None,), "_tries_again": (None,), "backward_ended": (), "look": ((net(x),), False), "note_packing": (),
        "mark_unfinished_forward": (), "file_opened": ("save", None), "tell_ledger": (),
        "_indices": (iterator,), "indices_wanted": (iterator,), "indices_taken": (iterator, [0]),
        "batch_fetched": (batch,), "batch_begins": (batch,), "step_ended": (events.Step(1, "optimizer", True),),
        "_waits": (ctypes.create_string_buffer(64), 64, [0]), "_nothing_overflows": ({"found_inf_per_device": {}},),
        "cell_ended": (types.SimpleNamespace(may_fail=False, goes_on=False), None),
        "_module_takes": (net,), "_optimizer_takes": (optimizer,),
        "_count_sampled": (types.SimpleNamespace(num_sampled=None, sampled_token_ids=x), types.SimpleNamespace(
            query_start_loc_np=torch.tensor([0, 1]), num_computed_prefill_tokens_np=torch.tensor([0]), prefill_len_np=torch.tensor([1]))),
    }
    # These watch an import, or the end of the process, which Python brings about.
    ELSEWHERE = ("_watch", "watch", "_answer", "_leave_ours_alone", "_cuda_is_there", "_uncaught", "_exit_status",
                 "_ends_at_once", "_final", "_test_ended", "_pin_scaler", "_are_there", "_begin", "_end", "tell", "_on_ipython")
    lock = _thread.allocate_lock()

    def bare(function, args):
        '''The function is the thread's outermost frame, as where C calls it.'''
        before = _thread._count()
        _thread.start_new_thread(function, args)
        while _thread._count() > before:
            pass

    class Pointer:  # to what the virtual GPU tells of a value that is read back
        contents = sys.modules["_tonnage_guest.reads"]._Read() if "_tonnage_guest.reads" in sys.modules else None

    tried = set()
    for callback in list(guard.callbacks):
        name, module = callback.__name__, callback.__module__.rpartition(".")[2]
        if name == "<lambda>":
            args = (None,) if callback.__wrapped__.__code__.co_argcount else ()
        elif name == "_note":
            args = (Pointer,) if module == "reads" else (None,)
        elif name in ARGUMENTS:
            args = ARGUMENTS[name]
        elif name.startswith(ELSEWHERE):
            continue
        else:
            print("no arguments for", module, name)
            continue
        tried.add(name)
        bare(callback, args)
    # The same by the roads that a program takes.
    bare(net, (x,))
    bare(optimizer.step, ())
    bare(optimizer.zero_grad, ())
    bare(next, (iterator,))
    bare(torch._C._cuda_emptyCache, ()) if hasattr(torch._C, "_cuda_emptyCache") else None
    for observer in fake_cuda.observers:
        bare(observer, (0, 1000, 2000, 5))
    told = [each for event in vars(events).values() if isinstance(event, events.Event) for each in event.subscribers]
    print("not guarded", [each for each in told if not hasattr(each, "__wrapped__")])
    print(len(tried) > 40, len(told) > 30, state.lost)
    """


def test_no_sensor_needs_a_frame(run_with, wheel):
    done = run_with(wheel, PROGRAM)
    assert done.stdout == "not guarded []\nTrue True {}\n", done.stdout + done.stderr


BREAKS = {
    "steps": "sys.modules['_tonnage_guest.steps']._finished = None",
    "inputs": "sys.modules['_tonnage_guest.inputs'].tensors = None",
    "holders": "sys.modules['_tonnage_guest.holds'].rows_of = None",
    "phases": "sys.modules['_tonnage_guest.phases'].metadata = None",
    "backward": "sys.modules['_tonnage_guest.graph'].roots_of = None",
    "out_of_memory": "sys.modules['_tonnage_guest.oom'].describe = None",
    "history": "sys.modules['_tonnage_guest.history'].metadata = None",
    "usage": "sys.modules['_tonnage_guest.usage'].frames = None",
}


@pytest.mark.parametrize("sensor", BREAKS)
def test_a_sensor_is_lost_alone(run_with, wheel, sensor):
    """Each is broken in turn: the program goes on, and what the others learn is as before."""
    done = run_with(wheel, f"""
        import sys, torch, fake_cuda
        fake_cuda.start()
        fake_cuda.use(1000)
        net = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=.1)
        {BREAKS[sensor]}
        for _ in range(3):
            fake_cuda.use(10); fake_cuda.free(10)
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        try:
            fake_cuda.run_out(5000)
        except Exception as error:
            print(type(error).__name__)
        """)
    assert done.status == 0 and done.stdout.strip() == "OutOfMemoryError", done.stderr
    document = done.document
    rows = {row["name"]: row for row in document["sensors"]}
    lost = {name for name, row in rows.items() if row["state"] == "lost"}
    assert lost == {sensor} and rows[sensor]["costs"] and rows[sensor]["error"], (rows, done.stderr)
    assert done.stderr.count("one sensor of the hook stopped") == 1 and document["hook_error"] is None
    if sensor != "steps":
        assert document["steps"]["seen"] == 3
    if sensor != "out_of_memory":
        assert document["out_of_memory"]["requested_bytes"] == 5000
