import { context, type Context } from '@opentelemetry/api'
import { BasicTracerProvider, type SpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import {
  type AgentOptions,
  ConfigError,
  createAgent,
  type RunTelemetry,
  type Telemetry,
  UsageError,
} from '../../src/index.js'
import { otel } from '../../src/otel/index.js'
import { ManualModel } from '../support/manual-model.js'
import { played, stage, tick } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

const turns = [call('look'), text('Done.')]

async function outcomeWith(telemetry: Telemetry, options: Partial<AgentOptions> = {}) {
  const look = tool('look', () => 'seen')
  const play = await played(turns, { tools: [look], telemetry, ...options })
  const warnings = play.of('warning').map(({ code }) => code)
  return { ...play.result, warnings, inputs: look.inputs.length }
}

const wholeRun = { state: 'COMPLETED', output: 'Done.', inputs: 1 }
const throws = (): never => {
  throw new Error('No room for spans.')
}
const silent: RunTelemetry = {
  link: () => null,
  around: (_step, work) => work(),
  event: () => undefined,
  end: () => undefined,
}

describe('telemetry that throws', () => {
  it.each([
    ['begin', { begin: throws }],
    ['link', { begin: () => ({ ...silent, link: throws }) }],
    ['around, before the work', { begin: () => ({ ...silent, around: throws }) }],
    [
      'around, after the work',
      {
        begin: () => ({
          ...silent,
          around: (_step: unknown, work: () => unknown) => {
            work()
            return throws()
          },
        }),
      },
    ],
    ['event', { begin: () => ({ ...silent, event: throws }) }],
    ['everything', { begin: () => ({ link: throws, around: throws, event: throws, end: throws }) }],
  ] as [string, Telemetry][])('in %s affects no run, and causes one warning', async (_where, telemetry) => {
    expect(await outcomeWith(telemetry)).toMatchObject({ ...wholeRun, warnings: ['telemetry_error'] })
  })

  it('at the very end is reported before it', async () => {
    const event: RunTelemetry['event'] = ({ type }) => {
      if (type === 'run_ended') throws()
    }
    const play = await played([text('Done.')], { telemetry: { begin: () => ({ ...silent, event }) } })
    expect(play.events.slice(-2).map(({ type }) => type)).toEqual(['warning', 'run_ended'])
  })
})

describe('telemetry that violates its contract', () => {
  it('runs the work once, and does not change its result', async () => {
    const around = ((_step: unknown, work: () => unknown) => {
      work()
      work()
      return 'something else'
    }) as RunTelemetry['around']
    expect(await outcomeWith({ begin: () => ({ ...silent, around }) })).toMatchObject({
      ...wholeRun,
      warnings: [],
    })
  })

  it('prevents no work, and hides no error of it', async () => {
    const around = (() => undefined) as RunTelemetry['around']
    expect(await outcomeWith({ begin: () => ({ ...silent, around }) })).toMatchObject(wholeRun)
    const swallows = ((_step: unknown, work: () => unknown) => {
      try {
        return work()
      } catch {
        return undefined
      }
    }) as RunTelemetry['around']
    const broken = tool('look', () => {
      throw new Error('Broken.')
    })
    const play = await played(turns, {
      tools: [broken],
      telemetry: { begin: () => ({ ...silent, around: swallows }) },
    })
    expect(play.of('tool_result')).toMatchObject([{ status: 'error' }])
  })

  it.each([null, {}, { begin: 1 }, 'otel'])('%p is refused, with the valid values', (telemetry) => {
    const create = () => createAgent({ model: new ManualModel(), telemetry: telemetry as never })
    expect(create).toThrow(ConfigError)
    expect(create).toThrow(/telemetry must be the return value of otel\(\) from statewright\/otel/)
  })
})

function exporting(exporter: Pick<SpanExporter, 'export'>): Telemetry {
  const processor = new SimpleSpanProcessor({ ...exporter, shutdown: () => Promise.resolve() })
  return otel({ tracerProvider: new BasicTracerProvider({ spanProcessors: [processor] }) })
}

describe('an SDK that fails', () => {
  it('because an exporter throws or never answers affects no run', async () => {
    expect(await outcomeWith(exporting({ export: throws }))).toMatchObject({ ...wholeRun, warnings: [] })
    expect(await outcomeWith(exporting({ export: () => undefined }))).toMatchObject({
      ...wholeRun,
      warnings: [],
    })
  })

  it('because a span processor throws causes one warning', async () => {
    const nothing = () => Promise.resolve()
    const processor = { onStart: throws, onEnd: throws, forceFlush: nothing, shutdown: nothing }
    const telemetry = otel({ tracerProvider: new BasicTracerProvider({ spanProcessors: [processor] }) })
    expect(await outcomeWith(telemetry)).toMatchObject({ ...wholeRun, warnings: ['telemetry_error'] })
  })

  it('ends every started span, even if the end of each throws', async () => {
    const open = new Set<unknown>()
    const nothing = () => Promise.resolve()
    const processor = {
      onStart: (span: { spanContext(): { spanId: string } }) => void open.add(span.spanContext().spanId),
      onEnd: (span: { spanContext(): { spanId: string } }) => {
        open.delete(span.spanContext().spanId)
        throws()
      },
      forceFlush: nothing,
      shutdown: nothing,
    }
    const telemetry = otel({ tracerProvider: new BasicTracerProvider({ spanProcessors: [processor] }) })
    expect(await outcomeWith(telemetry)).toMatchObject({ ...wholeRun, warnings: ['telemetry_error'] })
    expect(open.size).toBe(0)
  })

  it('because it is missing costs only the spans', async () => {
    expect(await outcomeWith(otel())).toMatchObject({ ...wholeRun, warnings: [] })
  })
})

describe('without a context manager', () => {
  it('the tree is the same, except for spans of the app, whose parent is unknown', async () => {
    const recorded = new Recorded()
    const active: Context[] = []
    const child = await stage([text('Four.')])
    const research = child.agent.asTool({ name: 'research', description: 'Finds things out.' })
    const look = tool('look', async () => {
      await tick()
      active.push(context.active())
    })
    await played([call('look'), call('research', { task: 'x' }), text('Done.')], {
      tools: [look, research as never],
      telemetry: recorded.otel(),
    })
    expect(recorded.tree).toEqual([
      {
        invoke_agent: [
          { 'chat gpt-test': [] },
          { 'execute_tool look': [] },
          { 'chat gpt-test': [] },
          { 'execute_tool research': [{ 'invoke_agent research': [{ 'chat gpt-test': [] }] }] },
          { 'chat gpt-test': [] },
        ],
      },
    ])
    expect(active).toHaveLength(1)
  })
})

describe('options of otel', () => {
  it.each([
    [{ captureContents: true }, /otel has no option 'captureContents'/],
    [{ captureContent: 'yes' }, /captureContent must be true or false/],
    [{ agentName: '' }, /agentName must be a non-empty string/],
    [{ semconv: 'v1.40' }, /semconv must be 'latest' or 'v1.41'/],
    [{ tracerProvider: {} }, /tracerProvider must be an object with getTracer/],
    [{ meterProvider: {} }, /meterProvider must be an object with getMeter/],
    [null, /otel\(options\) must be an options object/],
  ])('%j is refused', (options, words) => {
    expect(() => otel(options as never)).toThrow(words)
    expect(() => otel(options as never)).toThrow(UsageError)
  })
})
