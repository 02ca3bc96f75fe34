import type { Row } from '../measure.js'
import { evaluationRows } from './evaluations.js'
import { fleetRows } from './fleet.js'
import { guardRows } from './guards.js'
import { messageRows } from './messages.js'
import { recordRows } from './records.js'
import { runRows } from './runs.js'
import { textRows } from './text.js'

export const rows: readonly Row[] = [
  ...textRows,
  ...guardRows,
  ...messageRows,
  ...recordRows,
  ...runRows,
  ...evaluationRows,
  ...fleetRows,
]
