# SPDX-License-Identifier: Apache-2.0
"""The places of torch that the hook changes (points.py): all are there in the wheels that we support, and one that a release
has no more is told, with what that costs."""


def test_every_place_is_there(started):
    """Named one by one, and attached: those of modules that were imported late, too."""
    found, done = started
    missing = [place for place in found["places"] if not place[-1]]
    assert len(found["places"]) >= 40 and not missing, missing
    assert found["lost"] == [{}, {}], done.stderr
    assert all(row["state"] == "attached" and row["costs"] is None for row in done.document["sensors"])


ANOTHER_RELEASE = """
    import sys
    from _tonnage_guest import imports

    def other_next(self):
        return self._next_data()

    imports.watch("torch.utils.data.dataloader", lambda module: setattr(module._BaseDataLoaderIter, "__next__", other_next))
    imports.watch("torch.serialization", lambda module: delattr(module, "_open_zipfile_writer"))
    import torch, torch.utils.data
    del torch._C._cuda_attach_out_of_memory_observer
    points = sys.modules["_tonnage_guest.points"]
    points.attach(points.INITIALISED)
    print(len(list(torch.utils.data.DataLoader(range(8), batch_size=2))))
    """


def test_a_place_that_is_gone_is_told(run_with, wheel):
    """One that is gone, one of another shape, and a sensor whose only place it is; the program goes on."""
    done = run_with(wheel, ANOTHER_RELEASE)
    assert (done.status, done.stdout, done.stderr) == (0, "4\n", "")
    rows = {row["name"]: (row["state"], row["costs"]) for row in done.document["sensors"]}
    assert rows["phases"] == ("attached", "saving is no phase of its own")
    assert rows["loaders"] == ("attached", "batches are not seen, and epochs are not ended early, so the run takes longer")
    assert rows["out_of_memory"] == ("absent", "an out-of-memory error has no line, and handled ones are not counted")
    assert rows["backward"] == ("attached", None)
