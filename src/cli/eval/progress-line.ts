import { type Clock, readElapsed } from '../../core/base/clock.js'
import type { CliIO } from '../command.js'

/** How often a line at a terminal is drawn anew, and how often a log gets one, in milliseconds. */
const terminalMs = 100
const logMs = 5000

/** One line on stderr that says how far a command is: drawn over at a terminal, else a new one every five seconds. */
export class ProgressLine {
  readonly #stderr: CliIO['stderr']
  readonly #clock: Clock
  readonly #isTerminal: boolean
  #text = ''
  #isShown = false
  #lastAt: number
  #timer: unknown

  constructor({ stderr, env }: Pick<CliIO, 'stderr' | 'env'>, clock: Clock) {
    this.#stderr = stderr
    this.#clock = clock
    this.#isTerminal = stderr.isTTY === true && env['TERM'] !== 'dumb'
    this.#lastAt = this.#isTerminal ? -Infinity : readElapsed(clock)
  }

  update(text: string): void {
    this.#text = text
    if (this.#timer !== undefined) return
    const waitMs = this.#lastAt + (this.#isTerminal ? terminalMs : logMs) - readElapsed(this.#clock)
    if (waitMs <= 0) return this.#write()
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      this.#write()
    }, waitMs)
    // It keeps no process alive.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  /** Removes the line from a terminal. */
  close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isShown) this.#stderr.write('\r\u001B[K')
    this.#isShown = false
  }

  #write(): void {
    this.#lastAt = readElapsed(this.#clock)
    if (!this.#isTerminal) {
      this.#stderr.write(`statewright: ${this.#text}\n`)
      return
    }
    const width = Math.max(1, (this.#stderr.columns ?? 80) - 1)
    this.#stderr.write(`\r${Array.from(this.#text).slice(0, width).join('')}\u001B[K`)
    this.#isShown = true
  }
}
