import { checkFacts } from '../../src/testing/check-session-log.js'
import { details } from '../../src/testing/reference-model/details.js'
import { judgeLog, type LogEntry, type LogViolation } from '../../src/testing/reference-model/judge-log.js'

/** All rules about logs. They include the table of spec/, the details that it leaves open, and the consistency of records. */
export function judgeWhole(log: LogEntry[]): LogViolation | null {
  return judgeLog(log, details) ?? checkFacts(log)
}
