import { refuseTooLarge } from './limits.js'

export interface SseHandler {
  /** The data of an event, parsed. `event` is the event's name, '' when it has none. */
  onJson: (value: unknown, event: string) => void
  /** The data of an event that is no JSON object: `[DONE]`, a keep-alive, an object that is broken. */
  onText: (data: string, event: string) => void
}

/**
 * Server-sent events that carry JSON objects. The same text gives the same events however it is cut. An object that
 * fills its `data` line is handed over at once, so that servers which leave out the blank line stream too.
 */
export function createSseParser({ onJson, onText }: SseHandler) {
  /** A line whose end has not come yet. */
  let rest = ''
  let afterReturn = false
  let event = ''
  /** Data lines that make no object yet. */
  let pending: string | null = null

  function deliver(data: string): boolean {
    let value: unknown
    try {
      value = JSON.parse(data)
    } catch {
      return false
    }
    onJson(value, event)
    return true
  }

  function endEvent(): void {
    const data = pending
    pending = null
    if (data !== null && !deliver(data)) onText(data, event)
    event = ''
  }

  function takeData(data: string): void {
    if (pending !== null) {
      pending += `\n${data}`
      refuseTooLarge(pending.length)
    } else if (!data.trimStart().startsWith('{')) {
      if (data !== '') onText(data, event)
    } else if (!deliver(data)) pending = data
  }

  function takeLine(line: string): void {
    if (line === '') endEvent()
    else if (line.startsWith('data:')) takeData(line.slice(line.startsWith(' ', 5) ? 6 : 5))
    else if (line.startsWith('event:')) event = line.slice(6).trim()
  }

  return {
    push(chunk: string): void {
      if (chunk === '') return
      let text = afterReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk
      afterReturn = chunk.endsWith('\r')
      if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n')

      let start = 0
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
        const line = rest + text.slice(start, end)
        rest = ''
        start = end + 1
        takeLine(line)
      }
      rest += text.slice(start)
      refuseTooLarge(rest.length)
    },

    /** The end of the stream also ends the last line and the last event. */
    end(): void {
      if (rest !== '') takeLine(rest)
      rest = ''
      endEvent()
    },
  }
}
