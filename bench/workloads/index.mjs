// All workloads, in the order of the table. A workload has
//   title, floor    what is measured, and against what
//   cases           `{ name, … }`; everything in it reaches `run`
//   metrics         key of a figure → its name and unit; all are costs: less is better
//   sides           the floor first
//   run(options)    measures one case of one side in a process of its own and returns the figures
//   model, trees    needs the scripted model; directory trees of these sizes
//   growth          optional: two cases whose figure is compared within each side

import importing from './import.mjs';
import latency from './latency.mjs';
import loop from './loop.mjs';
import parallel from './parallel.mjs';
import search from './search.mjs';
import session from './session.mjs';
import stream from './stream.mjs';

export const workloads = { import: importing, session, stream, loop, parallel, latency, search };
