import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { isFailedStatus } from '../../src/web/exposure.js'

test.each<[ResultStatus, boolean]>([
  ['ok', false],
  ['rejected', false],
  ['not_executed', false],
  ['interrupted', false],
  ['error', true],
  ['timeout', true],
])('a result that is %s is reported as an error of a tool: %s', (status, isFailed) => {
  expect(isFailedStatus(status)).toBe(isFailed)
})
