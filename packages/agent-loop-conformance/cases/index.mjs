import approvals from './approvals.mjs'
import cancel from './cancel.mjs'
import concurrency from './concurrency.mjs'
import faults from './faults.mjs'
import history from './history.mjs'
import limits from './limits.mjs'
import loops from './loops.mjs'
import resume from './resume.mjs'
import truncation from './truncation.mjs'
import usage from './usage.mjs'
import wire from './wire.mjs'

/** Every case, with an id made of the class and the name. */
export const cases = [
  ...wire,
  ...truncation,
  ...history,
  ...cancel,
  ...limits,
  ...usage,
  ...loops,
  ...faults,
  ...concurrency,
  ...approvals,
  ...resume,
].map((one) => ({
  ...one,
  needs: one.needs ?? [],
  id: `${one.class}/${one.name}`,
}))
