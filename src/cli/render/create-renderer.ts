import type { AgentConfig } from '../../../machines/agent/config.js'
import type { CliIO } from '../command.js'
import type { OutputForm } from '../commands/common-options.js'
import { eventRenderer, resultRenderer } from './json-renderer.js'
import { wantsColor } from './paint.js'
import type { Renderer } from './renderer.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { createEventFormatter } from '../../core/format/format-events.js'
import { type Paint, createPaint } from '../../core/format/format-words.js'
import { formatRunSummary } from '../../core/format/run-summary.js'

export interface HumanOptions {
  color: boolean
  /** Columns. Default 100. */
  width?: number
  /** The limits that the summary shows beside the totals. */
  limits: AgentConfig['limits']
}

/** Shows a run as text for people, with a summary at the end. */
export class HumanRenderer implements Renderer {
  readonly #format: (event: AgentEvent) => string
  readonly #paint: Paint
  readonly #limits: AgentConfig['limits']
  #startedAt: number | null = null
  #endedAt = 0

  constructor({ limits, ...options }: HumanOptions) {
    this.#format = createEventFormatter({ ...options, timings: false })
    this.#paint = createPaint(options.color)
    this.#limits = limits
  }

  renderEvent(event: AgentEvent): string {
    this.#startedAt ??= event.at
    this.#endedAt = event.at
    return event.type === 'run_ended' ? '' : this.#format(event)
  }

  renderResult(result: RunResult): string {
    const spent = this.#startedAt === null ? null : this.#endedAt - this.#startedAt
    return `\n${formatRunSummary(result, this.#limits, spent, this.#paint)}`
  }
}

export function createRenderer(
  output: OutputForm,
  limits: AgentConfig['limits'],
  { stdout, env }: Pick<CliIO, 'stdout' | 'env'>,
): Renderer {
  if (output === 'json') return resultRenderer
  if (output === 'events') return eventRenderer
  const color = wantsColor(stdout, env)
  return new HumanRenderer({ color, limits, ...(stdout.columns && { width: stdout.columns }) })
}
