import * as fc from 'fast-check'
import { runsAll } from './extent.js'

fc.configureGlobal({ numRuns: runsAll ? 100 : 10 })
