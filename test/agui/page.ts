import { defaultApplyEvents, HttpAgent, transformChunks, verifyEvents } from '@ag-ui/client'
import type { Message } from '@ag-ui/core'
import { EventSchemas } from '@ag-ui/core/schemas'
import { from } from 'rxjs'
import { createAGUIFold } from '../../src/agui/agui-fold.js'
import type { AGUIEvent, AGUIMessage } from '../../src/agui/index.js'
import type { AgentEvent } from '../../src/index.js'

/** A page that uses the AG-UI packages. Invalid events throw. */
export class AGUIPage {
  messages: Message[] = []
  state: Record<string, unknown> = {}

  /** One run, from its RUN_STARTED to its end. */
  async take(events: readonly AGUIEvent[]): Promise<void> {
    for (const event of events) {
      const read = EventSchemas.safeParse(event)
      if (!read.success) throw new Error(`${JSON.stringify(event)}: ${read.error.message}`)
    }
    const agent = new HttpAgent({
      url: 'http://page.test',
      initialMessages: this.messages,
      initialState: this.state,
    })
    const input = {
      threadId: 't',
      runId: 'r',
      messages: this.messages,
      state: this.state,
      tools: [],
      context: [],
    }
    // The client has its own copy of rxjs, of another version: the same, but not to the compiler.
    const emitted = from(events) as unknown as Parameters<ReturnType<typeof verifyEvents>>[0]
    const applied = defaultApplyEvents(input, verifyEvents()(transformChunks()(emitted)), agent, [])
    await new Promise<void>((resolve, reject) => {
      applied.subscribe({
        next: ({ messages, state }) => {
          if (messages) this.messages = messages
          if (state) this.state = state as Record<string, unknown>
        },
        error: reject,
        complete: resolve,
      })
    })
  }

  /** The user has sent a message. */
  say(id: string, content: string): void {
    if (!this.messages.some((message) => message.id === id)) this.messages.push({ id, role: 'user', content })
  }
}

/** The validation errors of the AG-UI packages for these events. */
export function faultsOf(received: readonly AgentEvent[]): string[] {
  const fold = createAGUIFold({ threadId: 't', runId: 'r', history: [] })
  const events = [fold.begin(), ...received.map((event) => fold.handleEvent(event)), fold.end()].flat()
  const faults = events.flatMap((event) => {
    const read = EventSchemas.safeParse(event)
    return read.success ? [] : [`AG-UI: ${event.type}: ${read.error.message}`]
  })
  const emitted = from(events) as unknown as Parameters<ReturnType<typeof verifyEvents>>[0]
  verifyEvents()(transformChunks()(emitted)).subscribe({
    error: (error: Error) => faults.push(`AG-UI: ${error.message}`),
  })
  return faults
}

/** Results arrive in completion order; the transcript has them in call order. */
export function comparable(messages: readonly AGUIMessage[]): unknown[] {
  const callOf = messages.map(({ role }, i) =>
    role === 'tool' ? messages.findLastIndex((one, j) => j < i && one.role !== 'tool') : i,
  )
  return messages
    .map((message, i) => ({ message, at: callOf[i] ?? i }))
    .toSorted(
      (a, b) =>
        a.at - b.at ||
        (a.message.role === 'tool' && b.message.role === 'tool'
          ? a.message.id.localeCompare(b.message.id)
          : 0),
    )
    .map(({ message }) => {
      if (message.role === 'user') return { role: 'user', id: message.id }
      const { metadata: _metadata, error: _error, ...rest } = { metadata: 0, error: 0, ...message }
      if (rest.role === 'tool') return { ...rest, content: withoutNote(rest.content) }
      if (rest.role !== 'assistant' || !rest.toolCalls) return rest
      // Edits that no shield has cleared are withheld from the transcript; the page has the original call.
      return { ...rest, toolCalls: rest.toolCalls.map(({ id, function: { name } }) => ({ id, name })) }
    })
}

/** Only the model reads that the user edited a call. */
function withoutNote(content: unknown): unknown {
  return typeof content === 'string'
    ? content.replace(/^The user changed the arguments to .* before approving\.\n\n/s, '')
    : content
}
