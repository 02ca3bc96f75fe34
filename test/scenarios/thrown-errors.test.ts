import { type AgentEvent, memoryStore, ToolError } from '../../src/index.js'
import { played } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

const failing = (error: Error) =>
  tool('fail', () => {
    throw error
  })

describe('an error that a tool throws', () => {
  it.each([
    ['transient', 'error', new ToolError('transient', 'Not now.')],
    ['policy_denied', 'denied', new ToolError('policy_denied', 'Never.')],
    ['failed', 'error', new Error('It broke.')],
  ] as const)(
    'is reported with its kind, %s, in its result, its step and its span',
    async (kind, status, error) => {
      const recorded = new Recorded()
      const { events } = await played([call('fail'), text('Done.')], {
        tools: [failing(error)],
        telemetry: recorded.otel(),
      })
      expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', status, errorKind: kind }))
      const step = events.find(({ type, ...event }) => type === 'step_completed' && 'callId' in event)
      expect(step).toMatchObject({ payload: { toolResponse: { status, errorKind: kind } } })
      const span = recorded.spans.find(({ name }) => name === 'execute_tool fail')
      expect(span?.attributes['statewright.tool.error_kind']).toBe(kind)
    },
  )

  it('has no kind if a call succeeds', async () => {
    const { events } = await played([call('look'), text('Done.')], { tools: [tool('look')] })
    expect(events.some(({ type }) => type === 'tool_result')).toBe(true)
    expect(JSON.stringify(events)).not.toContain('errorKind')
  })

  it('is the cause of its live step, with its stack, and is in neither log nor transcript nor JSON', async () => {
    const thrown = new Error('It broke.', { cause: new Error('Deep down.') })
    const store = memoryStore()
    const { events, result } = await played([call('fail'), text('Done.')], {
      tools: [failing(thrown)],
      store,
    })
    const completed = events.find(
      (event): event is Extract<AgentEvent, { type: 'step_completed' }> =>
        event.type === 'step_completed' && event.stepType === 'tool_execution',
    )
    expect(completed?.error?.code).toBe('error')
    expect(completed?.error?.message).toContain('failed: It broke')
    expect(completed?.error?.cause).toBe(thrown)
    const stored = JSON.stringify([store.read(result.sessionId), result.messages, events])
    expect(stored).not.toMatch(/ at .*\.test\.[jt]s:\d+:\d+/)
    expect(Object.isFrozen(thrown)).toBe(false)
  })

  it.each([true, false])(
    'is an exception of its span, with its message if content is captured: %s',
    async (captureContent) => {
      const recorded = new Recorded()
      await played([call('fail'), text('Done.')], {
        tools: [failing(new Error('It broke.'))],
        telemetry: recorded.otel({ captureContent }),
      })
      const span = recorded.spans.find(({ name }) => name === 'execute_tool fail')
      const exception = span?.events.find(({ name }) => name === 'exception')?.attributes
      expect(exception?.['exception.type']).toBe('Error')
      expect(exception?.['exception.stacktrace']).toMatch(/ at .*\.test\.[jt]s:\d+:\d+/)
      const words = JSON.stringify([exception, span?.status])
      expect(words.includes('It broke.')).toBe(captureContent)
    },
  )
})
