import { optionsRule, expectArgument } from '../base/expect-argument.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import { parseStepNumber } from '../../../machines/agent/step-id.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { formatChildLine, formatEventLine, type LineStyle } from './event-line.js'
import { createPaint } from './paint.js'
import { formatRunSummary } from './run-summary.js'
import { stripControls } from './format-words.js'

/** How `createEventFormatter` writes. */
export interface EventFormatterOptions {
  /** Columns, at least 40. Default 100. What does not fit is cut; what people and models say is not. */
  width?: number
  /** Escape sequences for a terminal. Default: off. */
  color?: boolean
  /** How long each inference, shield call and memory retrieval took. Default: on. Tools always say it. */
  timings?: boolean
}

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

/**
 * A run as a person likes to follow it: text as it streams, everything else on lines of its own, and at the end what it
 * took. The returned function is told one run's events in order, and gives what each adds to the output: write it as
 * it is, without a line break. Text of models and tools loses its control characters on the way.
 *
 * @example
 * const format = createEventFormatter({ color: true })
 * for await (const event of agent.run('What changed?')) process.stdout.write(format(event))
 */
export function createEventFormatter(options: EventFormatterOptions = {}): (event: AgentEvent) => string {
  expectArgument('createEventFormatter(options)', options, optionsRule)
  const screen = new Screen(options)
  return (event) => screen.show(event)
}

/** Remembers where the cursor stands, what has been streamed, and what the run has taken so far. */
class Screen {
  readonly #style: LineStyle
  #column: 'start' | 'text' | 'reasoning' = 'start'
  /** The step whose text is on the screen. */
  #streamed: string | null = null
  /** Lines that wait for the end of the text. */
  #waiting = ''
  #startedAt: number | null = null
  #steps = 0
  #usage = noUsage

  constructor({ width = 100, color = false, timings = true }: EventFormatterOptions) {
    this.#style = { paint: createPaint(color), width: width >= 40 ? width : 40, timings }
  }

  show(event: AgentEvent): string {
    this.#startedAt ??= event.at
    switch (event.type) {
      case 'stream_chunk':
        return this.#showChunk(event)
      case 'assistant_message':
        return this.#showAnswer(event)
      case 'child_event':
        return this.#writeLine(formatChildLine(event, this.#style))
      case 'run_ended':
        return this.#showEnd(event)
      case 'usage':
        this.#usage = event.run
        return ''
      case 'step_completed':
        // An accepted response is what counts as a step of the run. Its id has its number, also after a resume.
        if (event.stepType === 'inference' && !event.summary && event.outcome === 'ok')
          this.#steps = parseStepNumber(event.stepId) ?? this.#steps + 1
        return this.#writeAfterText(formatEventLine(event, this.#style))
      default:
        return this.#writeLine(formatEventLine(event, this.#style))
    }
  }

  #showChunk({ stepId, text, reasoning, reset, finished }: EventOf<'stream_chunk'>): string {
    let out = ''
    if (reset && this.#streamed === stepId) {
      this.#streamed = null
      const withdrawn = '↻ what was said above is withdrawn; the model starts over'
      out += this.#writeLine(this.#style.paint('dim', withdrawn))
    }
    if (reasoning) out += this.#writeText('reasoning', stripControls(reasoning))
    if (text) {
      this.#streamed = stepId
      out += this.#writeText('text', stripControls(text))
    }
    if (!finished) return out
    out += this.#startLine() + this.#waiting
    this.#waiting = ''
    return out
  }

  #showAnswer({ stepId, message }: EventOf<'assistant_message'>): string {
    const text = message.content || message.refusal || ''
    if (this.#streamed === stepId || text === '') return this.#startLine()
    this.#streamed = stepId
    return this.#writeLine(stripControls(text))
  }

  #showEnd({ state, reason, at }: EventOf<'run_ended'>): string {
    const durationMs = at - (this.#startedAt ?? at)
    const told = { state, reason, steps: this.#steps, usage: this.#usage }
    return this.#writeLine('') + formatRunSummary(told, {}, durationMs, this.#style.paint)
  }

  /** A line of its own, wherever the cursor stands. */
  #writeLine(text: string | null): string {
    return text === null ? '' : `${this.#startLine()}${text}\n`
  }

  /** A tool of the provider's own can end in the middle of a text. */
  #writeAfterText(text: string | null): string {
    if (this.#column === 'start' || text === null) return this.#writeLine(text)
    this.#waiting += `${text}\n`
    return ''
  }

  /** Text that goes on where it left off. */
  #writeText(kind: 'text' | 'reasoning', text: string): string {
    if (text === '') return ''
    const start = this.#column === kind ? '' : this.#startLine()
    this.#column = text.endsWith('\n') ? 'start' : kind
    return start + (kind === 'reasoning' ? this.#style.paint('dim', text) : text)
  }

  #startLine(): string {
    const start = this.#column === 'start' ? '' : '\n'
    this.#column = 'start'
    return start
  }
}
