import type { Bench } from './bench.js';
import { agent } from './benches/agent.js';
import { cluster } from './benches/cluster.js';
import { cold } from './benches/cold.js';
import { consoleBench } from './benches/console.js';
import { cudasim } from './benches/cudasim.js';
import { decide } from './benches/decide.js';
import { dev } from './benches/dev.js';
import { floods } from './benches/floods.js';
import { footprint } from './benches/footprint.js';
import { fresh } from './benches/fresh.js';
import { inference } from './benches/inference.js';
import { inject } from './benches/inject.js';
import { invoke } from './benches/invoke.js';
import { kit } from './benches/kit.js';
import { live } from './benches/live.js';
import { neighbours } from './benches/neighbours.js';
import { order } from './benches/order.js';
import { profile } from './benches/profile.js';
import { real } from './benches/real.js';
import { share } from './benches/share.js';
import { surface } from './benches/surface.js';
import { tokens } from './benches/tokens.js';
import { view } from './benches/view.js';

/** Every bench by its name. */
export const benches: Readonly<Record<string, Bench>> = {
  agent,
  invoke,
  cluster,
  cold,
  console: consoleBench,
  floods,
  footprint,
  fresh,
  inference,
  inject,
  cudasim,
  decide,
  dev,
  kit,
  live,
  neighbours,
  order,
  profile,
  real,
  share,
  surface,
  tokens,
  view,
};
