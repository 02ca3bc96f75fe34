import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import type {
  TelemetryRunInfo,
  TelemetryStepInfo,
  RunTelemetry,
  Telemetry,
  TelemetryParent,
} from './telemetry.js'

/** What measures the run, kept from hurting it. `report` is told of the first thing that it throws. */
export function beginTelemetry(
  telemetry: Telemetry,
  run: TelemetryRunInfo,
  report: (thrown: unknown) => void,
): SafeTelemetry | undefined {
  try {
    return new SafeTelemetry(telemetry, telemetry.begin(run), report)
  } catch (thrown) {
    report(thrown)
    return undefined
  }
}

/** A run's telemetry, whatever it does: work is done once, and what it gives is what it gave. */
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
    try {
      const link: unknown = this.#run.link()
      return typeof link === 'string' && link.length <= getMaxLink(this.#run) ? link : null
    } catch (thrown) {
      this.#reportOnce(thrown)
      return null
    }
  }

  around<T>(step: TelemetryStepInfo, work: () => T): T {
    let done: { value: T } | { error: unknown } | undefined
    const once = (): T => {
      if (done === undefined) {
        try {
          done = { value: work() }
        } catch (error) {
          done = { error }
        }
      }
      return unwrapOutcome(done)
    }
    try {
      this.#run.around(step, once)
    } catch (thrown) {
      const isOfWork = done !== undefined && 'error' in done && done.error === thrown
      if (!isOfWork) this.#reportOnce(thrown)
    }
    return once()
  }

  event(announcement: EmittedEvent): void {
    try {
      this.#run.event(announcement)
    } catch (thrown) {
      this.#reportOnce(thrown)
    }
  }

  end(): void {
    try {
      this.#run.end()
    } catch (thrown) {
      this.#reportOnce(thrown)
    }
  }

  /** For a sub-agent that a call of the run is carried out by. */
  describeParent(callId: string, name: string, isWithheld: boolean): TelemetryParent {
    return { telemetry: this.#telemetry, run: this.#run, callId, name, isUncleared: isWithheld }
  }

  #reportOnce(thrown: unknown): void {
    if (this.#hasThrown) return
    this.#hasThrown = true
    this.#report(thrown)
  }
}

/** It is in every log that runs are kept in: a `traceparent` has 55 characters. */
const maxLink = 200

/** Several telemetries have a list of links, as JSON. */
const getMaxLink = ({ parts }: RunTelemetry): number =>
  parts === undefined ? maxLink : (maxLink + 10) * (parts.length + 1)

function unwrapOutcome<T>(done: { value: T } | { error: unknown }): T {
  if ('error' in done) throw done.error
  return done.value
}
