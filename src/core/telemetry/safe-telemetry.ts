import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import type {
  TelemetryRunInfo,
  TelemetryStepInfo,
  RunTelemetry,
  Telemetry,
  TelemetryParent,
} from './telemetry.js'
import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import { describeError, configError } from '../base/errors.js'

/** The telemetry of a run. Work is executed exactly once and its result is returned, even if the telemetry throws. */
export class SafeTelemetry implements RunTelemetry {
  readonly #telemetry: Telemetry
  readonly #run: RunTelemetry
  readonly #report: (thrown: unknown) => void
  #hasThrown = false

  constructor(telemetry: Telemetry, run: RunTelemetry, report: (thrown: unknown) => void) {
    this.#telemetry = telemetry
    this.#run = run
    this.#report = report
  }

  link(): string | null {
    return this.#attempt(() => {
      const link: unknown = this.#run.link()
      return typeof link === 'string' && link.length <= getMaxLink(this.#run) ? link : null
    })
  }

  around<T>(step: TelemetryStepInfo, work: () => T): T {
    let done: { value: T } | { error: unknown } | undefined
    const once = (): T => {
      try {
        done ??= { value: work() }
      } catch (error) {
        done = { error }
      }
      if ('error' in done) throw done.error
      return done.value
    }
    this.#attempt(
      () => this.#run.around(step, once),
      (thrown) => done !== undefined && 'error' in done && done.error === thrown,
    )
    return once()
  }

  event(announcement: EmittedEvent): void {
    this.#attempt(() => this.#run.event(announcement))
  }

  end(): void {
    this.#attempt(() => this.#run.end())
  }

  /** Describes the run and the call as the parent of a sub-agent. */
  describeParent(callId: string, name: string, isWithheld: boolean): TelemetryParent {
    return { telemetry: this.#telemetry, run: this.#run, callId, name, isUncleared: isWithheld }
  }

  /** Reports the first error of the telemetry, but none of the work. */
  #attempt<T>(ask: () => T, isOfWork: (thrown: unknown) => boolean = () => false): T | null {
    try {
      return ask()
    } catch (thrown) {
      if (this.#hasThrown || isOfWork(thrown)) return null
      this.#hasThrown = true
      this.#report(thrown)
      return null
    }
  }
}

/** Maximum length of a link, which is stored in every log. A `traceparent` has 55 characters. */
const maxLink = 200

/** The maximum length of a run's link. Combined telemetries have a list of links, as JSON. */
const getMaxLink = ({ parts }: RunTelemetry): number =>
  parts === undefined ? maxLink : (maxLink + 10) * (parts.length + 1)

export interface MeasuringOptions {
  readonly telemetry: Telemetry | undefined
  readonly model: TelemetryRunInfo['model']
}

interface MeasuredStart {
  runId: string
  input: { sessionId: string } | null
  link: string | null | undefined
  above: TelemetryParent | undefined
  self: unknown
  emit: (announcement: EmittedEvent) => void
}

/** A sub-agent uses the telemetry of its parent run unless it has its own. */
export function measureRun(
  { telemetry: own, model }: MeasuringOptions,
  { runId, input, link = null, above, self, emit }: MeasuredStart,
): SafeTelemetry | undefined {
  const telemetry = own ?? above?.telemetry
  if (telemetry === undefined) return undefined
  const context = (): AgentContext =>
    ((self as AnyActorRef).getSnapshot() as { context: AgentContext }).context
  const { sessionId } = input ?? context()
  const isResumed = input === null
  const run: TelemetryRunInfo = { runId, sessionId, model, isResumed, link, parent: above ?? null, context }
  const report = (thrown: unknown): void => {
    const message = `The telemetry threw: ${describeError(thrown)}`
    emit({ type: 'warning', code: 'telemetry_error', message })
  }
  try {
    return new SafeTelemetry(telemetry, telemetry.begin(run), report)
  } catch (thrown) {
    report(thrown)
    return undefined
  }
}

/** Undefined for no telemetry or an empty list. @throws {ConfigError} `invalid_config` */
export function checkTelemetry(option: Telemetry | readonly Telemetry[] | undefined): Telemetry | undefined {
  const all: readonly Telemetry[] = option === undefined ? [] : [option].flat()
  const wrong = all.findIndex((telemetry) => typeof telemetry?.begin !== 'function')
  if (wrong >= 0) {
    const key = Array.isArray(option) ? `telemetry[${wrong}]` : 'telemetry'
    const message = `${key} must be the return value of otel() from statewright/otel, or an object with begin(run).`
    throw configError(message, key)
  }
  // If one throws, the others still work.
  return all.length > 1 ? { begin: (run) => new CombinedRun(all, run) } : all[0]
}

class CombinedRun implements RunTelemetry {
  readonly parts: readonly RunTelemetry[]
  readonly #runs: readonly (SafeTelemetry | null)[]
  #thrown: { error: unknown } | null = null

  constructor(all: readonly Telemetry[], run: TelemetryRunInfo) {
    const links = splitLinks(run.link, all.length)
    const note = (error: unknown): void => {
      this.#thrown ??= { error }
    }
    const begun = all.map((telemetry, i) => {
      try {
        return { telemetry, run: telemetry.begin({ ...run, link: links[i] ?? null }) }
      } catch (error) {
        note(error)
        return null
      }
    })
    this.parts = begun.flatMap((one) => (one === null ? [] : [one.run]))
    this.#runs = begun.map((one) => one && new SafeTelemetry(one.telemetry, one.run, note))
  }

  link(): string | null {
    const links = this.#runs.map((run) => run?.link() ?? null)
    this.#throwNoted()
    return links.every((link) => link === null) ? null : JSON.stringify(links)
  }

  around<T>(step: TelemetryStepInfo, work: () => T): T {
    const nested = this.#runs.reduceRight<() => T>(
      (inner, run) => (run === null ? inner : () => run.around(step, inner)),
      work,
    )
    const value = nested()
    this.#throwNoted()
    return value
  }

  event(announcement: EmittedEvent): void {
    for (const run of this.#runs) run?.event(announcement)
    this.#throwNoted()
  }

  end(): void {
    for (const run of this.#runs) run?.end()
    this.#throwNoted()
  }

  /** Reports a pending error as one warning. */
  #throwNoted(): void {
    const thrown = this.#thrown
    this.#thrown = null
    if (thrown !== null) throw thrown.error
  }
}

/** Splits the links of several telemetries. A link from an earlier process with only one telemetry is passed to all. */
function splitLinks(link: string | null, count: number): readonly (string | null)[] {
  try {
    const links: unknown = JSON.parse(link ?? '')
    if (Array.isArray(links))
      return links.map((one: unknown) => (typeof one === 'string' ? one : null)).slice(0, count)
  } catch {
    // The link is not a list.
  }
  return Array.from({ length: count }, () => link)
}
