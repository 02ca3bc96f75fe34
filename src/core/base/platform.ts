import { StatewrightError } from './errors.js'

/** Randomness and event loop of the platform. Tests replace them and `clock.ts` to replay a run exactly. */
export interface Platform {
  random(): number
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

export const getPlatform = (): Platform => current

/** Replaces the platform for the whole process, for tests. Without an argument, restores the default. */
export function setPlatform(platform: Platform = ownPlatform): void {
  current = platform
}

/** Some engines build a UUID as a rope of sixteen strings. Reading a character flattens it to save memory. */
export function createId(): string {
  const id = getPlatform().createUuid() ?? formatUuid(getPlatform().fillWithChance(new Uint8Array(16)))
  id.charCodeAt(0)
  return id
}

/** For pages without `randomUUID`, in version 4. */
function formatUuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte, i) => {
    const marked = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte
    return marked.toString(16).padStart(2, '0')
  }).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

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

export function warnProcess(sentence: string, code?: string): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const how = { type: 'StatewrightWarning', ...(code !== undefined && { code }) }
  if (process?.emitWarning) process.emitWarning(sentence, how)
  // oxlint-disable-next-line no-console -- browsers have no process warnings
  else console.warn(sentence)
}

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

/** @throws {StatewrightError} `missing_package`, with the command that installs it */
export async function loadPeer<Module>(name: string, purpose: string): Promise<Module> {
  try {
    // Not a literal, so that bundlers ignore it and the types do not need the package.
    return (await import(name)) as Module
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    throw missingPackageError(purpose, /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name, error)
  }
}

export function missingPackageError(purpose: string, name: string, cause: unknown): StatewrightError {
  const message = `${purpose} needs the package ${name}, which is not installed. Run: npm install ${name}`
  return new StatewrightError('missing_package', message, name, { cause })
}
