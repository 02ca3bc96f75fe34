import { anyOptions, expectArgument } from '../base/expect-argument.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import { parseStepNumber } from '../../../machines/agent/step-id.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { childLine, eventLine, type LineStyle } from './event-line.js'
import { painter } from './paint.js'
import { summary } from './summary.js'
import { printable } from './words.js'

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
  expectArgument('createEventFormatter(options)', options, anyOptions)
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
    this.#style = { paint: painter(color), width: width >= 40 ? width : 40, timings }
  }

  show(event: AgentEvent): string {
    this.#startedAt ??= event.at
    switch (event.type) {
      case 'stream_chunk':
        return this.#chunk(event)
      case 'assistant_message':
        return this.#answer(event)
      case 'child_event':
        return this.#line(childLine(event, this.#style))
      case 'run_ended':
        return this.#end(event)
      case 'usage':
        this.#usage = event.run
        return ''
      case 'step_completed':
        // An accepted response is what counts as a step of the run. Its id has its number, also after a resume.
        if (event.stepType === 'inference' && !event.summary && event.outcome === 'ok')
          this.#steps = parseStepNumber(event.stepId) ?? this.#steps + 1
        return this.#afterText(eventLine(event, this.#style))
      default:
        return this.#line(eventLine(event, this.#style))
    }
  }

  #chunk({ stepId, text, reasoning, reset, finished }: EventOf<'stream_chunk'>): string {
    let out = ''
    if (reset && this.#streamed === stepId) {
      this.#streamed = null
      const withdrawn = '↻ what was said above is withdrawn; the model starts over'
      out += this.#line(this.#style.paint('dim', withdrawn))
    }
    if (reasoning) out += this.#flow('reasoning', printable(reasoning))
    if (text) {
      this.#streamed = stepId
      out += this.#flow('text', printable(text))
    }
    if (!finished) return out
    out += this.#freshLine() + this.#waiting
    this.#waiting = ''
    return out
  }

  #answer({ stepId, message }: EventOf<'assistant_message'>): string {
    const text = message.content || message.refusal || ''
    if (this.#streamed === stepId || text === '') return this.#freshLine()
    this.#streamed = stepId
    return this.#line(printable(text))
  }

  #end({ state, reason, at }: EventOf<'run_ended'>): string {
    const durationMs = at - (this.#startedAt ?? at)
    const told = { state, reason, steps: this.#steps, usage: this.#usage }
    return this.#line('') + summary(told, {}, durationMs, this.#style.paint)
  }

  /** A line of its own, wherever the cursor stands. */
  #line(text: string | null): string {
    return text === null ? '' : `${this.#freshLine()}${text}\n`
  }

  /** A tool of the provider's own can end in the middle of a text. */
  #afterText(text: string | null): string {
    if (this.#column === 'start' || text === null) return this.#line(text)
    this.#waiting += `${text}\n`
    return ''
  }

  /** Text that goes on where it left off. */
  #flow(kind: 'text' | 'reasoning', text: string): string {
    if (text === '') return ''
    const start = this.#column === kind ? '' : this.#freshLine()
    this.#column = text.endsWith('\n') ? 'start' : kind
    return start + (kind === 'reasoning' ? this.#style.paint('dim', text) : text)
  }

  #freshLine(): string {
    const start = this.#column === 'start' ? '' : '\n'
    this.#column = 'start'
    return start
  }
}
