// The host processes. Each is restarted when it dies, is killed at random, and is shut down at random.
import { fork } from 'node:child_process'
import { once } from 'node:events'

export class Processes {
  #file
  #execPath
  #settings
  #children = new Map()
  #started = 0
  #isOver = false
  counts = { kills: 0, terms: 0 }
  /** The processes' messages. */
  onMessage = () => undefined

  constructor(file, execPath, settings) {
    this.#file = file
    this.#execPath = execPath
    this.#settings = settings
  }

  /** `isOnce`: no restart after it dies. */
  async start(slot, { isOnce = false, ...own } = {}) {
    const settings = { ...this.#settings, ...own, slot, id: `host-${slot}-${(this.#started += 1)}` }
    const child = fork(this.#file, [JSON.stringify(settings)], {
      execPath: this.#execPath,
      stdio: ['ignore', 'inherit', this.#settings.isQuiet ? 'ignore' : 'inherit', 'ipc'],
    })
    this.#children.set(slot, child)
    child.on('message', (message) => message !== 'ready' && this.onMessage(message))
    child.once('exit', () => {
      if (this.#isOver || this.#children.get(slot) !== child) return
      this.#children.delete(slot)
      if (!isOnce) void this.start(slot, own)
    })
    await Promise.race([once(child, 'message').then(() => (child.isReady = true)), once(child, 'exit')])
  }

  /**
   * Picks only a process that is up. Otherwise, on a busy machine, no process would ever finish its start.
   */
  #one() {
    const up = [...this.#children.values()].filter((child) => child.isReady && child.exitCode === null)
    return up[Math.floor(Math.random() * up.length)]
  }

  /** Whether this many are up. */
  areReady(count) {
    return [...this.#children.values()].filter((child) => child.isReady).length >= count
  }

  kill() {
    if (this.#one()?.kill('SIGKILL')) this.counts.kills += 1
  }

  /** All at once. Settles when they are gone. */
  async killAll() {
    const up = [...this.#children.values()]
    for (const child of up) if (child.kill('SIGKILL')) this.counts.kills += 1
    await Promise.all(up.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
  }

  /** Like a supervisor, with a grace period before the kill. */
  term() {
    const child = this.#one()
    if (!child?.kill('SIGTERM')) return
    this.counts.terms += 1
    setTimeout(() => child.kill('SIGKILL'), 4000).unref()
  }

  /** Like a deploy, shuts one down without a restart. Settles when it is gone. */
  async end(slot) {
    const child = this.#children.get(slot)
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }

  async stop() {
    this.#isOver = true
    const children = [...this.#children.values()]
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
  }
}
