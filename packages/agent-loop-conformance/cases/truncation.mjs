// Truncated answers. Incomplete calls have no effect.
import { call, cut, end, first, say, words } from '../frames.mjs'

const truncation = (rest) => ({ class: 'truncation', ...rest })

const neverRuns = (name, title, mistake, plan, fault) =>
  truncation({
    name,
    title,
    mistake,
    async run({ serve, open, tool, check, certify }) {
      const lane = serve([{ ...plan, fault: plan.fault ?? fault }, say('I write less.')])
      const remove = tool('remove', { path: 'string' }, () => 'removed')
      const { ended } = await open({ lane, tools: [remove] }).say('Go.')
      certify(lane, fault)
      check(remove.runs.length === 0, `executed with ${JSON.stringify(remove.runs)} (${ended})`)
      return ended
    },
  })

const half = call(0, 'c1', 'remove', '{"path":"/home/ada/old')
const whole = call(0, 'c1', 'remove', '{"path":"/home/ada"}')

export default [
  neverRuns(
    'cut-call',
    'A call whose arguments are truncated at the output limit is not executed',
    'repairsArguments',
    { frames: [first, ...half, ...end('length')] },
    'length',
  ),
  neverRuns(
    'whole-looking-call',
    'A call in an answer truncated at the output limit is not executed, even if it looks complete',
    'trustsCutCalls',
    { frames: [first, ...whole, ...end('length')] },
    'length',
  ),
  neverRuns(
    'stream-cut-in-call',
    'A call is not executed when the stream is cut after it',
    'acceptsCut',
    { frames: [first, ...whole, cut] },
    'cut',
  ),
  neverRuns(
    'closed-after-call',
    'A call is not executed when the stream closes without a finish reason',
    'acceptsCut',
    { frames: [first, ...whole] },
    'no end',
  ),
  neverRuns(
    'filtered-call',
    'A call in an answer that a content filter stopped is not executed',
    'trustsCutCalls',
    { frames: [first, ...whole, ...end('content_filter')] },
    'filter',
  ),
  truncation({
    name: 'cut-text',
    title: 'Text truncated at the output limit is continued or reported',
    mistake: 'hidesLength',
    async run({ serve, open, check, certify }) {
      const lane = serve([
        { ...say('The first half', { finish: 'length' }), fault: 'length' },
        say(' and the second.'),
      ])
      const { text, ok, ended } = await open({ lane }).say('Go.')
      certify(lane, 'length')
      check(
        !ok || text.includes('second'),
        `reported as a normal end, with the text ${JSON.stringify(text)} (${ended})`,
      )
      return ended
    },
  }),
  truncation({
    name: 'filtered-text',
    title: 'Text stopped by a content filter is reported',
    mistake: 'hidesLength',
    async run({ serve, open, check, certify }) {
      const lane = serve([{ ...say('The first half', { finish: 'content_filter' }), fault: 'filter' }])
      const { ok, ended } = await open({ lane }).say('Go.')
      certify(lane, 'filter')
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  }),
  truncation({
    name: 'retry-text',
    title: 'After a retry, the text of the failed attempt is not in the answer',
    mistake: 'joinsAttempts',
    needs: ['retries'],
    async run({ serve, open, check, certify }) {
      const lane = serve([{ frames: [first, ...words('Half of a fail'), cut] }, say('The answer.')])
      const { text, ok, ended } = await open({ lane }).say('Go.')
      certify(lane, 'cut')
      if (!ok) return `not retried, and told: ${ended}`
      return check(text === 'The answer.', `the text ${JSON.stringify(text)} (${ended})`)
    },
  }),
]
