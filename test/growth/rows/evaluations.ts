import {
  compareReports,
  evaluate,
  type EvaluationCase,
  type EvaluationReport,
  formatReport,
  formatReportPage,
  parseCases,
  parseReport,
  readSessionCases,
} from '../../../src/testing/index.js'
import { memoryStore, type SessionStore } from '../../../src/index.js'
import { type Row, row } from '../measure.js'
import { agentOf, scripted, stepping } from '../scripted.js'

const cases = (count: number): EvaluationCase[] =>
  Array.from({ length: count }, (_, i) => ({ id: `case-${i}`, input: 'Go.', tags: { about: `${i % 4}` } }))

const answering = () =>
  agentOf(
    scripted(() => ({ text: 'Done.' })),
    {},
  )

/** A report with this many copies of one case under different ids. */
async function report(count: number): Promise<EvaluationReport> {
  const one = await evaluate({ agent: answering(), cases: cases(4) })
  const all = Array.from({ length: count }, (_, i) => ({
    ...(one.cases[i % 4] as (typeof one.cases)[number]),
    id: `case-${i}`,
  }))
  return { ...one, cases: all }
}

/** A store with one session of this many steps, each with a call. */
async function recorded(steps: number): Promise<SessionStore> {
  const store = memoryStore()
  await agentOf(stepping(steps), { store }).run('Look.', { session: 's' }).result
  return store
}

export const evaluationRows: readonly Row[] = [
  row({
    name: 'an evaluation of many cases',
    covers: ['statewright/testing evaluate'],
    from: 50,
    prepare: cases,
    run: (input) => evaluate({ agent: answering(), cases: input, onProgress: () => undefined }),
  }),
  row({
    name: 'a file of many cases',
    covers: ['statewright/testing parseCases'],
    from: 2_000,
    prepare: (count) =>
      cases(count)
        .map((one) => JSON.stringify(one))
        .join('\n'),
    run: (text) => parseCases(text),
  }),
  row({
    name: 'a report of many cases, read, compared and shown',
    covers: [
      'statewright/testing parseReport',
      'statewright/testing compareReports',
      'statewright/testing formatReport',
      'statewright/testing formatReportPage',
    ],
    from: 25,
    prepare: async (count) => JSON.stringify(await report(count)),
    run: (text) => {
      const read = parseReport(text)
      const compared = compareReports(read, read)
      return [formatReport(read, compared), formatReportPage(read, compared)]
    },
  }),
  row({
    name: 'a long session as a case',
    covers: ['statewright/testing readSessionCases'],
    from: 50,
    prepare: recorded,
    run: (store) => readSessionCases(store),
  }),
]
