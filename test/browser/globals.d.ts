import type * as statewright from '../../src/index.js'
import type { z as zod } from 'zod'

/** What a page of these tests has, for the code that runs in it. */
declare global {
  var app: typeof statewright & { z: typeof zod }
}
