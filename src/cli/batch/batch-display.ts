import { formatMoney } from '../../core/format/format-words.js'
import { type Clock, readElapsed, unrefTimer } from '../../core/base/clock.js'
import type { BatchProgress } from '../../fleet/batch.js'

/** The terminal, or the log, that a batch is shown in. */
export interface DisplayTarget {
  write(text: string): unknown
  /** Whether a line can be drawn over. */
  isTerminal: boolean
  /** Characters of a line. */
  columns: number
}

/** How often the bar is drawn, and how often a log gets a line, in milliseconds. */
const barMs = 100
const lineMs = 5000

/** Shows how a batch stands: a bar that is drawn over at a terminal, else one line every five seconds. */
export class BatchDisplay {
  readonly #target: DisplayTarget
  readonly #clock: Clock
  #progress: BatchProgress | null = null
  /** What is on the terminal's last line. */
  #shown = ''
  #lastAt = -Infinity
  #timer: unknown

  constructor(target: DisplayTarget, clock: Clock) {
    this.#target = target
    this.#clock = clock
    if (!target.isTerminal) this.#lastAt = readElapsed(clock)
  }

  update(progress: BatchProgress): void {
    this.#progress = progress
    if (this.#timer !== undefined) return
    const waitMs = Math.max(
      0,
      this.#lastAt + (this.#target.isTerminal ? barMs : lineMs) - readElapsed(this.#clock),
    )
    if (waitMs === 0) this.#draw()
    else {
      this.#timer = this.#clock.setTimeout(() => {
        this.#timer = undefined
        this.#draw()
      }, waitMs)
      unrefTimer(this.#timer)
    }
  }

  /** A line that stays. */
  note(text: string): void {
    this.#erase()
    this.#target.write(`${text}\n`)
    if (this.#target.isTerminal) this.#draw()
  }

  /** Removes the bar. */
  close(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#erase()
    this.#progress = null
  }

  #draw(): void {
    if (this.#progress === null) return
    this.#lastAt = readElapsed(this.#clock)
    const { isTerminal, columns } = this.#target
    const line = formatProgress(this.#progress)
    if (!isTerminal) this.#target.write(`statewright: ${line}\n`)
    else {
      const text = `${formatBar(this.#progress)}${line}`.slice(0, Math.max(1, columns - 1))
      if (text === this.#shown) return
      this.#target.write(`\r${text}\u001B[K`)
      this.#shown = text
    }
  }

  #erase(): void {
    if (this.#shown === '') return
    this.#target.write('\r\u001B[K')
    this.#shown = ''
  }
}

/** `[======    ] ` */
function formatBar({ total, done, failed, waiting }: BatchProgress): string {
  if (total === null || total === 0) return ''
  const width = 20
  const filled = Math.min(width, Math.floor((width * (done + failed + waiting)) / total))
  return `[${'='.repeat(filled)}${' '.repeat(width - filled)}] `
}

/** `120/10000 done, 8 running, 2 waiting, 1 failed, $0.12, about 3 min left` */
export function formatProgress(progress: BatchProgress): string {
  const { total, done, running, waiting, failed, cost, timeLeftMs } = progress
  return [
    `${done}${total === null ? '' : `/${total}`} done`,
    `${running} running`,
    `${waiting} waiting`,
    `${failed} failed`,
    formatMoney(cost, 'cost unknown'),
    ...(timeLeftMs === null ? [] : [`about ${formatTimeLeft(timeLeftMs)} left`]),
  ].join(', ')
}

export function formatTimeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 100) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
