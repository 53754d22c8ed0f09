"""What importing the package does and does not do."""

import subprocess
import sys

import launch


def python(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=launch.environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_no_framework():
    done = python(
        "import sys, allring\n"
        "print([m for m in ('torch', 'tensorflow', 'jax') if m in sys.modules])"
    )
    assert done.stdout == "[]\n", done


def test_library_not_found(tmp_path):
    missing = tmp_path / "liballring.so"
    done = python("import allring", ALLRING_LIBRARY=missing)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError") and str(missing) in last and "No such file" in last


def test_library_of_another_kind():
    done = python("import allring.torch", ALLRING_LIBRARY="libm.so.6")
    assert done.returncode == 1
    assert "ImportError: cannot load" in done.stderr and "ALLRING_LIBRARY" in done.stderr


def test_not_initialized():
    done = python(
        "import numpy as np, allring as hvd\n"
        "assert not hvd.is_initialized()\n"
        "assert hvd.global_process_set.size() is None\n"
        "assert hvd.global_process_set.included() is None\n"
        "hvd.shutdown()\n"
        "for f in (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank,\n"
        "          hvd.cross_size, hvd.is_homogeneous, hvd.mpi_threads_supported, hvd.barrier,\n"
        "          lambda: hvd.allreduce(np.ones(1)), lambda: hvd.broadcast_object(1)):\n"
        "    try:\n"
        "        f()\n"
        "    except ValueError as e:\n"
        "        assert 'init' in str(e), e\n"
        "    else:\n"
        "        raise AssertionError(f)\n"
    )
    assert done.returncode == 0, done


def test_symbols_stay_local():
    done = python(
        "import allring, ctypes\n"
        "try:\n"
        "    ctypes.CDLL(None).allring_version\n"
        "except AttributeError:\n"
        "    print('local')\n"
    )
    assert done.stdout == "local\n", done


def test_errors_can_be_sent():
    done = python(
        "import pickle, allring\n"
        "error = pickle.loads(pickle.dumps(allring.PeerLostError('gone', 3)))\n"
        "assert (error.rank, str(error)) == (3, 'gone')\n"
        "assert isinstance(error, allring.HorovodInternalError)\n"
        "assert allring.HostsUpdatedInterrupt(True).skip_sync\n"
    )
    assert done.returncode == 0, done
