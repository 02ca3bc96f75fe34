// Limits are exact and reported, and the paid work is kept.
import { calls, say } from '../frames.mjs'
import { answersOf, resultsOf } from '../strict-history.mjs'

const limits = (rest) => ({ class: 'limits', needs: ['stepLimit'], ...rest })

/** A model that makes calls forever, with different arguments each time. */
const restless = (cap, tokens) =>
  Object.assign(
    Array.from({ length: cap }, (_, at) =>
      calls([[`c${at}`, 'read', { path: `f${at}` }]], { text: `Working on ${at}.`, tokens }),
    ),
    { otherwise: say('That was all.') },
  )

const reader = (tool) => tool('read', { path: 'string' }, ({ path }) => `text of ${path}`)

const exact = (steps) =>
  limits({
    name: `exactly-${steps}`,
    title: `A limit of ${steps} step${steps > 1 ? 's' : ''} allows ${steps} request${steps > 1 ? 's' : ''}, and is reported`,
    mistake: 'countsFromZero',
    async run({ serve, open, tool, check }) {
      const lane = serve(restless(20))
      const { ok, ended } = await open({ lane, tools: [reader(tool)], limits: { steps } }).say('Go.')
      check(lane.requests.length === steps, `${lane.requests.length} requests (${ended})`)
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  })

export default [
  exact(1),
  exact(3),
  limits({
    name: 'last-batch',
    title: 'The next request contains each result of the last step exactly once',
    mistake: 'dropsResults',
    async run({ serve, open, tool, check }) {
      const lane = serve(restless(2))
      const read = reader(tool)
      const conversation = open({ lane, tools: [read], limits: { steps: 2 } })
      const { ended } = await conversation.say('Go.')
      const before = lane.requests.length
      await conversation.say('Again.')
      const { messages } = lane.requests[before] ?? {}
      check(messages, `no further request (${ended})`)
      const results = resultsOf(messages).map(({ text }) => text)
      for (const { path } of read.runs) {
        const count = results.filter((text) => text.includes(`text of ${path}`)).length
        check(count === 1, `${count} results for the executed call of ${path} (${ended})`)
      }
      return `${read.runs.length} executed`
    },
  }),
  limits({
    name: 'last-words',
    title: 'The text of the last step is in the next request',
    mistake: 'dropsLastStep',
    async run({ serve, open, tool, check }) {
      const lane = serve(restless(2))
      const conversation = open({ lane, tools: [reader(tool)], limits: { steps: 2 } })
      const { ended } = await conversation.say('Go.')
      const before = lane.requests.length
      await conversation.say('Again.')
      const answers = answersOf(lane.requests[before]?.messages ?? [])
      check(
        answers.some((text) => text.includes('Working on 1.')),
        `assistant messages in the next request: ${JSON.stringify(answers)} (${ended})`,
      )
    },
  }),
  limits({
    name: 'final-answer',
    title: 'An answer in the last allowed step counts as a normal end',
    mistake: 'countsFromZero',
    async run({ serve, open, tool, check }) {
      const lane = serve([...restless(2), say('The answer.')])
      const { text, ok, ended } = await open({ lane, tools: [reader(tool)], limits: { steps: 3 } }).say('Go.')
      check(text === 'The answer.' && ok, `the text ${JSON.stringify(text)} (${ended})`)
    },
  }),
  limits({
    name: 'token-budget',
    title:
      'With a budget of 100 tokens and 40 tokens per step, there are three requests, and the limit is reported',
    mistake: 'ignoresBudget',
    needs: ['tokenBudget'],
    async run({ serve, open, tool, check }) {
      const lane = serve(restless(20, [30, 10]))
      const { ok, ended } = await open({ lane, tools: [reader(tool)], limits: { tokens: 100 } }).say('Go.')
      check(lane.requests.length === 3, `${lane.requests.length} requests (${ended})`)
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  }),
  limits({
    name: 'budget-answer',
    title: 'The answer that crosses a budget is returned',
    mistake: 'dropsPaidAnswer',
    needs: ['tokenBudget'],
    async run({ serve, open, tool, check }) {
      const lane = serve([say('The answer.', { tokens: [90, 60] })])
      const { text, ended } = await open({ lane, tools: [reader(tool)], limits: { tokens: 100 } }).say('Go.')
      check(text === 'The answer.', `the text ${JSON.stringify(text)} (${ended})`)
    },
  }),
]
