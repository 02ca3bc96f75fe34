import { ConfigError, createAgent, memoryStore, type RunTelemetry, type Telemetry } from '../../src/index.js'
import { otel } from '../../src/otel/index.js'
import { ManualModel } from '../support/manual-model.js'
import { again, played, stage } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

const turns = [call('look'), text('Done.')]

/** A telemetry that records its calls. */
function noting(link: string | null = null) {
  const calls: string[] = []
  const links: (string | null)[] = []
  const telemetry: Telemetry = {
    begin: (run): RunTelemetry => {
      links.push(run.link)
      return {
        link: () => link,
        around: (step, work) => {
          calls.push(step.type)
          return work()
        },
        event: ({ type }) => calls.push(type),
        end: () => calls.push('end'),
      }
    },
  }
  return { calls, links, telemetry }
}

const throws = (): never => {
  throw new Error('No room.')
}

it('each of several integrations receives everything, and the work runs once', async () => {
  const [first, second] = [noting(), noting()]
  const look = tool('look', () => 'seen')
  const play = await played(turns, { tools: [look], telemetry: [first.telemetry, second.telemetry] })
  expect(play.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(look.inputs).toHaveLength(1)
  expect(first.calls).toEqual(second.calls)
  expect(first.calls).toEqual(expect.arrayContaining(['inference', 'tool_execution', 'run_ended']))
  expect(play.of('warning')).toEqual([])
})

it.each([
  ['begin', { begin: throws }],
  ['every method', { begin: () => ({ link: throws, around: throws, event: throws, end: throws }) }],
] as [string, Telemetry][])(
  'one that throws in %s affects neither the run nor the others',
  async (_, bad) => {
    const good = noting()
    const look = tool('look', () => 'seen')
    const play = await played(turns, { tools: [look], telemetry: [bad, good.telemetry] })
    expect(play.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect([look.inputs.length, play.of('warning').map(({ code }) => code)]).toEqual([1, ['telemetry_error']])
    expect(good.calls).toEqual(expect.arrayContaining(['inference', 'tool_execution', 'run_ended']))
  },
)

it('each receives its own link when the run continues, also that of an earlier version', async () => {
  const store = memoryStore()
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const opened = await stage([call('pay'), text('Done.')], {
    store,
    tools: [pay],
    telemetry: [noting('one').telemetry, noting().telemetry, noting('three').telemetry],
  })
  await opened.agent.run('Pay.', { session: 's' }).result
  const later = [noting(), noting(), noting()]
  const other = again(opened, { store, tools: [pay], telemetry: later.map(({ telemetry }) => telemetry) })
  const run = await other.resume('s')
  expect(later.map(({ links }) => links)).toEqual([['one'], [null], ['three']])
  run.cancel()
  await run.result

  const single = await stage([call('pay')], { store, tools: [pay], telemetry: noting('alone').telemetry })
  await single.agent.run('Pay.', { session: 't' }).result
  const two = [noting(), noting()]
  await again(single, { store, tools: [pay], telemetry: two.map(({ telemetry }) => telemetry) }).resume('t')
  expect(two.map(({ links }) => links)).toEqual([['alone'], ['alone']])
})

it('OpenTelemetry next to another integration creates the same spans, as children of the parent span', async () => {
  const recorded = new Recorded()
  const measured = otel({ tracerProvider: recorded.provider })
  const child = (await stage([text('Found.')], { telemetry: [noting().telemetry, measured] })).agent
  const research = child.asTool({ name: 'research', description: 'Researches.', maxSteps: 3 })
  const turns = [call('research', { task: 'Look.' }), text('Done.')]
  await played(turns, { tools: [research], telemetry: [noting().telemetry, measured] })
  const spans = recorded.spans
  const above = spans.find(({ name }) => name.startsWith('execute_tool'))
  const below = spans.filter(({ name }) => name.startsWith('invoke_agent'))
  expect(below.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toContain(
    above?.spanContext().spanId,
  )
})

it('an invalid element is refused by its position, and an empty list disables telemetry', () => {
  const model = new ManualModel()
  const make = (telemetry: unknown) => () => createAgent({ model, telemetry: telemetry as never })
  expect(make([noting().telemetry, {}])).toThrow(ConfigError)
  expect(make([noting().telemetry, {}])).toThrow('telemetry[1]')
  expect(make([])).not.toThrow()
})
