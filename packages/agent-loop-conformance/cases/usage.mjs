// Usage is counted, or reported as unknown.
import { calls, cut, end, first, refuse, say, sayWhole, words } from '../frames.mjs'

const usage = (rest) => ({ class: 'usage', needs: ['usage'], ...rest })
const read = (id) => [id, 'read', { path: id }]
const notAsked = 'the request does not ask for usage'
const asksForUsage = (lane) => lane.requests[0].body.stream_options?.include_usage === true
const total = (report) => (report ? report.input + report.output : Number.NaN)
/** Not a number, or flagged. Either way the library reports that it does not know the usage. */
const isUnknown = (report) => !report || report.unknown === true || Number.isNaN(total(report))

/** A call of the only tool, under any name that the library uses for it and for its input. */
function callOfFirstTool({ tools }) {
  const [{ function: tool }] = tools
  const names = tool.parameters.required ?? Object.keys(tool.parameters.properties ?? {})
  const input = Object.fromEntries(names.map((name) => [name, 'What do herons eat?']))
  return calls([['c1', tool.name, input]], { tokens: [100, 20] })
}

export default [
  usage({
    name: 'sum',
    title: 'The usage of two steps is added up',
    mistake: 'countsLastStep',
    async run({ serve, open, tool, check, claims }) {
      const lane = serve([calls([read('c1')], { tokens: [100, 20] }), say('Done.', { tokens: [130, 7] })])
      const outcome = await open({ lane, tools: [tool('read', { path: 'string' }, () => 'text')] }).say('Go.')
      claims(asksForUsage(lane), notAsked)
      return check(
        total(outcome.usage) === 257,
        `usage ${JSON.stringify(outcome.usage)}, not 257 (${outcome.ended})`,
      )
    },
  }),
  usage({
    name: 'before-error',
    title: 'A step that was paid for before the provider failed is counted',
    mistake: 'forgetsUsageOnError',
    async run({ serve, open, tool, check, claims }) {
      const lane = serve([calls([read('c1')], { tokens: [100, 20] }), refuse(400, 'context length exceeded')])
      const outcome = await open({ lane, tools: [tool('read', { path: 'string' }, () => 'text')] }).say('Go.')
      claims(asksForUsage(lane), notAsked)
      check(lane.requests.length >= 2, `${lane.requests.length} requests (${outcome.ended})`)
      check(total(outcome.usage) >= 120, `usage ${JSON.stringify(outcome.usage)}, not 120 (${outcome.ended})`)
    },
  }),
  usage({
    name: 'at-limit',
    title: 'Steps before a limit are counted',
    mistake: 'forgetsUsageOnError',
    needs: ['usage', 'stepLimit'],
    async run({ serve, open, tool, check, claims }) {
      const lane = serve([
        calls([read('c1')], { tokens: [100, 20] }),
        calls([read('c2')], { tokens: [130, 7] }),
      ])
      const tools = [tool('read', { path: 'string' }, () => 'text')]
      const outcome = await open({ lane, tools, limits: { steps: 2 } }).say('Go.')
      claims(asksForUsage(lane), notAsked)
      check(
        total(outcome.usage) === 257,
        `usage ${JSON.stringify(outcome.usage)}, not 257 (${outcome.ended})`,
      )
    },
  }),
  usage({
    name: 'cancelled',
    title: 'Steps before a cancellation are counted',
    mistake: 'forgetsUsageOnError',
    async run({ serve, open, tool, check, claims, settles }) {
      const controller = new AbortController()
      const lane = serve([calls([read('c1')], { tokens: [100, 20] }), say('Done.')])
      const cancels = tool('read', { path: 'string' }, () => {
        controller.abort()
        return 'text'
      })
      const outcome = await settles(
        open({ lane, tools: [cancels] }).say('Go.', { signal: controller.signal }),
      )
      claims(asksForUsage(lane), notAsked)
      check(
        total(outcome.usage) === 120,
        `usage ${JSON.stringify(outcome.usage)}, not 120 (${outcome.ended})`,
      )
    },
  }),
  usage({
    name: 'failed-attempt',
    title: 'The usage of a cut and retried attempt is counted, estimated or reported as unknown',
    mistake: 'joinsAttempts',
    needs: ['usage', 'retries'],
    async run({ serve, open, check, certify, claims }) {
      const lane = serve([
        { frames: [first, ...words('Half of an answer that is lost'), cut] },
        { frames: [first, ...words('Done.'), ...end('stop', [10, 5])] },
      ])
      const outcome = await open({ lane }).say('Go.')
      claims(asksForUsage(lane), notAsked)
      certify(lane, 'cut')
      if (lane.requests.length === 1) return `not retried: ${outcome.ended}`
      check(
        isUnknown(outcome.usage) || total(outcome.usage) > 15,
        `usage ${JSON.stringify(outcome.usage)}: the lost attempt is free (${outcome.ended})`,
      )
      return JSON.stringify(outcome.usage)
    },
  }),
  usage({
    name: 'sub-agent',
    title: 'The usage of a sub-agent is counted or reported as unknown',
    mistake: 'forgetsSubAgents',
    needs: ['usage', 'subAgents'],
    async run({ serve, open, check, claims }) {
      const lane = serve([
        callOfFirstTool,
        ({ stream }) =>
          stream ? say('Herons eat fish.', { tokens: [50, 5] }) : sayWhole('Herons eat fish.', [50, 5]),
        say('Done.', { tokens: [130, 7] }),
      ])
      const research = {
        name: 'research',
        description: 'Finds out what is asked.',
        fields: {},
        delegate: true,
      }
      const outcome = await open({ lane, tools: [research] }).say('Go.')
      claims(asksForUsage(lane), notAsked)
      check(lane.requests.length === 3, `${lane.requests.length} requests, not 3 (${outcome.ended})`)
      check(
        isUnknown(outcome.usage) || total(outcome.usage) === 312,
        `usage ${JSON.stringify(outcome.usage)}, not 312 (${outcome.ended})`,
      )
    },
  }),
]
