import * as fc from 'fast-check'
import { sampled } from './extent.js'

fc.configureGlobal({ numRuns: sampled(100) })
