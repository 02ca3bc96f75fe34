import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { RunResult } from '../../../machines/agent/outcome.js'
import { type Paint, painter, type Style } from './paint.js'
import type { Renderer } from './renderer.js'
import { styleOf, summary } from './summary.js'
import { duration, printable, shorten, shownArguments } from './words.js'

export interface HumanOptions {
  color: boolean
  /** Columns. Default 100. */
  width?: number
  /** What the summary sets the totals against. */
  limits: AgentConfig['limits']
}

const resting: ReadonlySet<string> = new Set(['PAUSED', 'WAITING_FOR_INPUT'])
const passing: ReadonlySet<string> = new Set(['RUNNING', 'WAITING_FOR_TOOL'])

/** What providers allow a tool's name. */
const longestName = 64

/** A run as a person likes to follow it. Remembers where the cursor stands and what has been streamed. */
export class HumanRenderer implements Renderer {
  readonly #paint: Paint
  readonly #width: number
  readonly #limits: AgentConfig['limits']
  #column: 'start' | 'text' | 'reasoning' = 'start'
  /** The step whose text is on the screen. */
  #streamed: string | null = null
  #startedAt: number | null = null
  #endedAt = 0

  constructor({ color, width = 100, limits }: HumanOptions) {
    this.#paint = painter(color)
    this.#width = Math.max(40, width)
    this.#limits = limits
  }

  event(event: AgentEvent): string {
    this.#startedAt ??= event.at
    this.#endedAt = event.at
    switch (event.type) {
      case 'state_changed':
        return this.#state(event)
      case 'user_message':
        return this.#line(this.#paint('bold', `> ${printable(textOf(event.message))}`))
      case 'stream_chunk':
        return this.#chunk(event)
      case 'assistant_message':
        return this.#answer(event)
      case 'tool_call': {
        const { name, arguments: json } = event.call.function
        const shown = `(${shownArguments(json, this.#width - 12)})`
        return this.#line(
          `  ${this.#paint('cyan', '→')} ${shorten(name, longestName)}${this.#paint('dim', shown)}`,
        )
      }
      case 'tool_progress':
        return this.#line(
          this.#paint(
            'dim',
            `  … ${shorten(event.name, longestName)}: ${shorten(inWords(event.progress), this.#width - 20)}`,
          ),
        )
      case 'tool_result':
        return this.#toolResult(event)
      case 'retry': {
        const wait = `waiting ${duration(event.delayMs)} before attempt ${event.attempt}`
        return this.#note('yellow', `↻ ${event.code}`, `${event.message.replace(/[\s.]+$/, '')}; ${wait}`)
      }
      case 'guardrail':
        return this.#note('yellow', `⚑ ${event.guard} (${event.action})`, event.message)
      case 'budget_warning':
        return this.#note('yellow', '! budget', event.message)
      case 'approval_requested': {
        const shown = shownArguments(event.arguments, this.#width)
        return this.#note(
          'yellow',
          '? approval',
          `${shorten(event.name, longestName)}(${shown}) waits for a person (call ${event.callId})`,
        )
      }
      case 'warning':
        return this.#note('yellow', `! ${event.code}`, event.message)
      case 'error':
        return this.#note('red', `✗ ${event.code}`, event.message)
      default:
        // What the others say (usage, the start and the end) stands in the summary.
        return ''
    }
  }

  result(result: RunResult): string {
    const spent = this.#endedAt - (this.#startedAt ?? this.#endedAt)
    return this.#line('') + summary(result, this.#limits, spent, this.#paint)
  }

  /** Final states are left to the summary. */
  #state({ to, reason }: Extract<AgentEvent, { type: 'state_changed' }>): string {
    if (passing.has(to)) return this.#line(this.#paint('dim', `● ${to}`))
    if (resting.has(to)) return this.#note(styleOf(to), `● ${to}`, reason ?? '')
    return ''
  }

  #chunk({
    stepId,
    text,
    reasoning,
    reset,
    finished,
  }: Extract<AgentEvent, { type: 'stream_chunk' }>): string {
    let out = ''
    if (reset && this.#streamed === stepId) {
      this.#streamed = null
      out += this.#line(this.#paint('dim', '↻ what was said above is withdrawn; the model starts over'))
    }
    if (reasoning) out += this.#flow('reasoning', printable(reasoning))
    if (text) {
      this.#streamed = stepId
      out += this.#flow('text', printable(text))
    }
    if (finished) out += this.#freshLine()
    return out
  }

  #answer({ stepId, message }: Extract<AgentEvent, { type: 'assistant_message' }>): string {
    const text = message.content || message.refusal || ''
    if (this.#streamed === stepId || text === '') return this.#freshLine()
    this.#streamed = stepId
    return this.#line(printable(text))
  }

  #toolResult({
    name,
    status,
    content,
    durationMs,
    truncated,
  }: Extract<AgentEvent, { type: 'tool_result' }>): string {
    const mark = status === 'ok' ? this.#paint('green', '✓') : this.#paint('red', `✗ ${status}`)
    const cut = truncated ? ' (cut)' : ''
    const first = shorten(firstLine(content), Math.max(20, this.#width - name.length - 24))
    return this.#line(
      `  ${mark} ${shorten(name, longestName)} ${this.#paint('dim', `${duration(durationMs)}${cut}  ${first}`)}`,
    )
  }

  #note(style: Style, head: string, message: string): string {
    return this.#line(`${this.#paint(style, printable(head))}  ${printable(message)}`.trimEnd())
  }

  /** A line of its own, wherever the cursor stands. */
  #line(text: string): string {
    return `${this.#freshLine()}${text}\n`
  }

  /** Text that goes on where it left off. */
  #flow(kind: 'text' | 'reasoning', text: string): string {
    if (text === '') return ''
    const start = this.#column === kind ? '' : this.#freshLine()
    this.#column = text.endsWith('\n') ? 'start' : kind
    return start + (kind === 'reasoning' ? this.#paint('dim', text) : text)
  }

  #freshLine(): string {
    const start = this.#column === 'start' ? '' : '\n'
    this.#column = 'start'
    return start
  }
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
}

function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return end < 0 ? start : `${start.slice(0, end)} …`
}

function inWords(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
