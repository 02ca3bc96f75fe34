import type { AgentEvent } from '../../src/index.js'
import { memoryStore } from '../../src/index.js'
import { played } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

const failing = (error: Error) =>
  tool('fail', () => {
    throw error
  })

describe('what a tool throws', () => {
  it('is the cause of its step, with its stack: live, and in neither log nor transcript nor JSON', async () => {
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
    const kept = JSON.stringify([store.read(result.sessionId), result.messages, events])
    expect(kept).not.toContain('thrown-errors.test')
    expect(Object.isFrozen(thrown)).toBe(false)
  })

  it.each([true, false])(
    'is an exception of its span; its words too where content is captured: %s',
    async (captureContent) => {
      const recorded = new Recorded()
      await played([call('fail'), text('Done.')], {
        tools: [failing(new Error('It broke.'))],
        telemetry: recorded.otel({ captureContent }),
      })
      const span = recorded.spans.find(({ name }) => name === 'execute_tool fail')
      const exception = span?.events.find(({ name }) => name === 'exception')?.attributes
      expect(exception?.['exception.type']).toBe('Error')
      expect(exception?.['exception.stacktrace']).toContain('thrown-errors.test')
      const words = JSON.stringify([exception, span?.status])
      expect(words.includes('It broke.')).toBe(captureContent)
    },
  )
})
