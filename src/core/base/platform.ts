import { StatewrightError } from './errors.js'

/**
 * Randomness and event loop of the platform. (Time comes from `clock.ts`.) Tests replace both to replay a run exactly.
 */
export interface Platform {
  /** A random number, from 0 up to but not including 1. */
  random(): number
  /** A random UUID. Undefined if the platform cannot create one. */
  createUuid(): string | undefined
  fillWithChance(bytes: Uint8Array<ArrayBuffer>): Uint8Array
  /** Calls back after all other pending tasks of the process or page. */
  runNextTurn(work: () => void): void
  /** Calls back once the caller has been able to subscribe to the returned object. */
  runSoon(work: () => void): void
}

const ownPlatform: Platform = {
  random: () => Math.random(),
  // `randomUUID` is missing on pages that are not served over https.
  createUuid: () => crypto.randomUUID?.(),
  fillWithChance: (bytes) => crypto.getRandomValues(bytes),
  runNextTurn: (work) => {
    // Browsers have no `setImmediate`, and Node delays a 0 ms timer by 1 ms.
    if (typeof setImmediate === 'function') setImmediate(work)
    else setTimeout(work, 0)
  },
  runSoon: (work) => {
    setTimeout(work)
  },
}

let current = ownPlatform

/** The platform in use. */
export const getPlatform = (): Platform => current

/** Replaces the platform for the whole process, for tests. Restores the default if called without an argument. */
export function setPlatform(platform: Platform = ownPlatform): void {
  current = platform
}

/**
 * A random UUID. Some engines build the UUID as a rope of sixteen strings. Reading a character flattens the rope, which
 * saves memory in parked runs.
 */
export function createId(): string {
  const id = getPlatform().createUuid() ?? formatUuid(getPlatform().fillWithChance(new Uint8Array(16)))
  id.charCodeAt(0)
  return id
}

/** Formats a UUID version 4, for pages without `randomUUID` (not served over https). */
function formatUuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte, i) => {
    const marked = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte
    return marked.toString(16).padStart(2, '0')
  }).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Resolves after one turn of the event loop, so that other work can run. */
export async function yieldToEventLoop(): Promise<void> {
  await new Promise<void>((resolve) => {
    getPlatform().runNextTurn(resolve)
  })
}

/** Long work yields to the event loop after this many milliseconds, so that runs and other requests can continue. */
export const stretchMs = 8

/** Number of calls to start per turn of the event loop. Each call takes up to 0.5 ms plus the tool's own time. */
export const startsPerTick = 50

/**
 * Runs `work` for all items in parallel and returns the outcomes in order. Starts at most `startsPerTick` items per
 * turn of the event loop. Throws the signal's reason if the signal aborts before all items have started.
 */
export async function runStaggered<Item, Outcome>(
  items: readonly Item[],
  abort: Pick<AbortSignal, 'throwIfAborted'>,
  work: (item: Item) => Promise<Outcome>,
): Promise<Outcome[]> {
  const begun: Promise<Outcome>[] = []
  for (const item of items) {
    if (begun.length > 0 && begun.length % startsPerTick === 0) {
      await yieldToEventLoop()
      abort.throwIfAborted()
    }
    const outcome = work(item)
    // Prevents an unhandled rejection. The error is rethrown below, after all items have started.
    outcome.catch(() => undefined)
    begun.push(outcome)
  }
  return Promise.all(begun)
}

/** Emits a process warning, or logs to the console if the platform has none. */
export function warnProcess(sentence: string, code?: string): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const how = { type: 'StatewrightWarning', ...(code !== undefined && { code }) }
  if (process?.emitWarning) process.emitWarning(sentence, how)
  // oxlint-disable-next-line no-console -- browsers have no process warnings
  else console.warn(sentence)
}

/** Loads a module or a value once, on first use. A failed load is retried on the next use. */
export function loadOnce<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

/**
 * Loads an optional package that is not installed with Statewright.
 * @throws {StatewrightError} `missing_package`, with the command that installs it
 */
export async function loadPeer<Module>(name: string, purpose: string): Promise<Module> {
  try {
    // Not a literal, so that bundlers ignore it and the types do not need the package.
    return (await import(name)) as Module
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    const installed = /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name
    throw new StatewrightError(
      'missing_package',
      `${purpose} needs the package ${installed}, which is not installed. Run: npm install ${installed}`,
      installed,
      { cause: error },
    )
  }
}
