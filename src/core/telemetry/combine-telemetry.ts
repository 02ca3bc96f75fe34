import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import { ConfigError } from '../base/errors.js'
import { SafeTelemetry } from './safe-telemetry.js'
import type { RunTelemetry, Telemetry, TelemetryRunInfo, TelemetryStepInfo } from './telemetry.js'

/**
 * The telemetry of an agent; undefined without one, and for an empty list.
 * @throws {ConfigError} `invalid_config` for what is none
 */
export function checkTelemetry(given: Telemetry | readonly Telemetry[] | undefined): Telemetry | undefined {
  const all: readonly Telemetry[] = given === undefined ? [] : [given].flat()
  const wrong = all.findIndex((telemetry) => typeof telemetry?.begin !== 'function')
  if (wrong >= 0) {
    const key = Array.isArray(given) ? `telemetry[${wrong}]` : 'telemetry'
    const message = `${key} must be what otel() of statewright/otel gives, or an object with begin(run).`
    throw new ConfigError('invalid_config', message, key)
  }
  return all.length > 1 ? combineTelemetry(all) : all[0]
}

/** Several telemetries as one. What one of them throws does not keep the others from their work. */
function combineTelemetry(all: readonly Telemetry[]): Telemetry {
  return { begin: (run) => new CombinedRun(all, run) }
}

class CombinedRun implements RunTelemetry {
  readonly parts: readonly RunTelemetry[]
  /** In the order of the telemetries; null for one that could not begin. */
  readonly #runs: readonly (SafeTelemetry | null)[]
  /** What was thrown and is not reported yet. */
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

  /** The run reports what is thrown here as one warning. */
  #throwNoted(): void {
    const thrown = this.#thrown
    this.#thrown = null
    if (thrown !== null) throw thrown.error
  }
}

/** Where another process had one telemetry, each is given its link: it knows its own. */
function splitLinks(link: string | null, count: number): readonly (string | null)[] {
  try {
    const links: unknown = JSON.parse(link ?? '')
    if (Array.isArray(links))
      return links.map((one: unknown) => (typeof one === 'string' ? one : null)).slice(0, count)
  } catch {
    // It is one link.
  }
  return Array.from({ length: count }, () => link)
}
