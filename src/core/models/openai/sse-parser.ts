import { refuseTooLarge } from './response-limits.js'

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
export class SseParser {
  readonly #handler: SseHandler
  /** A line whose end has not come yet. */
  #rest = ''
  #afterReturn = false
  #event = ''
  /** Data lines that make no object yet. */
  #pending: string | null = null

  constructor(handler: SseHandler) {
    this.#handler = handler
  }

  push(chunk: string): void {
    if (chunk === '') return
    let text = this.#afterReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk
    this.#afterReturn = chunk.endsWith('\r')
    if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n')

    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const line = this.#rest + text.slice(start, end)
      this.#rest = ''
      start = end + 1
      this.#takeLine(line)
    }
    this.#rest += text.slice(start)
    refuseTooLarge(this.#rest.length)
  }

  /** The end of the stream also ends the last line and the last event. */
  end(): void {
    if (this.#rest !== '') this.#takeLine(this.#rest)
    this.#rest = ''
    this.#endEvent()
  }

  #takeLine(line: string): void {
    if (line === '') this.#endEvent()
    else if (line.startsWith('data:')) this.#takeData(line.slice(line.startsWith(' ', 5) ? 6 : 5))
    else if (line.startsWith('event:')) this.#event = line.slice(6).trim()
  }

  #takeData(data: string): void {
    if (this.#pending !== null) {
      this.#pending += `\n${data}`
      refuseTooLarge(this.#pending.length)
    } else if (!data.trimStart().startsWith('{')) {
      if (data !== '') this.#handler.onText(data, this.#event)
    } else if (!this.#deliver(data)) this.#pending = data
  }

  #endEvent(): void {
    const data = this.#pending
    this.#pending = null
    if (data !== null && !this.#deliver(data)) this.#handler.onText(data, this.#event)
    this.#event = ''
  }

  #deliver(data: string): boolean {
    let value: unknown
    try {
      value = JSON.parse(data)
    } catch {
      return false
    }
    this.#handler.onJson(value, this.#event)
    return true
  }
}
