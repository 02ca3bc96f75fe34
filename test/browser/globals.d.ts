import type * as statewright from '../../src/index.js'
import type { z as zod } from 'zod'

/** The globals of the test pages, for code that runs in them. */
declare global {
  var app: typeof statewright & { z: typeof zod }
}
