import { isDeepStrictEqual } from 'node:util'
import { calls, steps } from './script.mjs'

/** The problems of the uninterrupted run, which is the reference for all others. */
export function referenceProblems({ result, ended, failed, end }) {
  const rules = [
    ['it is COMPLETED', result.state === 'COMPLETED' && result.reason === 'end_turn'],
    ['it has a step for each of the script', result.steps === steps.length],
    ['it tells the last words', result.output === steps.at(-1).text],
    ['it has a price', result.usage.cost > 0],
    ['the failures of the script took place', failed.length === steps.filter(({ fails }) => fails).length],
    [
      'each call ran once',
      isDeepStrictEqual(sorted(end.effects), sorted(calls.map(({ id }) => ({ callId: id })))),
    ],
    ['it was approved', end.records.some(({ data }) => data.includes('"APPROVE"'))],
    [
      'the log has a snapshot before its end',
      end.records.slice(0, -3).some(({ type }) => type === 'snapshot'),
    ],
    ['the fold of the log is the result', isDeepStrictEqual(end.result, result)],
    ['the reference model takes its log', end.violation === null],
    ['it ends once, with its last record', ended === 1 && end.ended && !end.endedBefore],
  ]
  return rules.flatMap(([rule, holds]) => (holds ? [] : [rule]))
}

const sorted = (lines) => lines.map(({ callId }) => callId).sort()
