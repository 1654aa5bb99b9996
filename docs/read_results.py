# How results are read in Python, cell by cell as in a notebook: python3 docs/read_results.py SWEEP.h5 RUN.h5
# It needs h5py and pandas.

# %% A sweep: one table, one row a cell.
import json
import sys

import h5py
import pandas

sweep = h5py.File(sys.argv[1], "r")
table = sweep["cells"]
cells = pandas.DataFrame.from_records(table[: table.attrs["rows"]])
for column in cells.columns[cells.dtypes == object]:
    cells[column] = cells[column].str.decode("utf-8")
done = cells[cells.status == "done"]
print(f"{len(cells)} cells, {len(done)} of them done")
units = dict(zip(cells.columns, table.attrs["unit"]))
print("throughput in", units["throughput_samples_per_s"])

# %% Which partitioner is fastest? Each against the best of the same other settings, where throughput is the objective:
# a plan for memory_efficiency or communication gives up throughput by intent.
axes = [name for name in cells.columns[3 : list(cells.columns).index("partitioner")] if name != "plan.partitioner"]
if "plan.objective" in axes:
    done = done[done["plan.objective"] == "throughput"]
rate = done.throughput_samples_per_s
best = done.groupby(axes).throughput_samples_per_s.transform("max") if axes else rate.max()
print((rate / best).groupby(done["plan.partitioner"]).describe()[["count", "mean", "min"]])

# %% One cell's plan, to be run again, and its stages.
fastest = done.loc[rate.idxmax(), "cell"]
detail = sweep["cells_detail"][fastest]
print(detail["plan"][()].decode().splitlines()[:4])
stages = pandas.DataFrame(json.loads(detail["stages"][()]))
print(stages[["pipeline", "index", "op_count", "forward_s", "backward_s", "memory_bytes"]])

# %% A run: rows of iterations, and how its ranks spent their time.
run = h5py.File(sys.argv[2], "r")
iterations = pandas.DataFrame.from_records(run["iterations"][: run["iterations"].attrs["rows"]])
print(f"{len(iterations)} iterations, loss {iterations.loss.iloc[0]:.4f} to {iterations.loss.iloc[-1]:.4f}")
ranks = pandas.DataFrame.from_records(run["ranks"][: run["ranks"].attrs["rows"]])
print(ranks[["rank", "busy_s", "idle_s", "peak_bytes"]])
