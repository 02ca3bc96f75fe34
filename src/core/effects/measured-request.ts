import { truncate } from '../../../guards/lib/cut.js'
import { scrubEvidence } from '../../../guards/lib/evidence.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { Clock } from '../base/clock.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { ModelProvider, ModelRequest } from '../models/provider.js'
import type { SafeTelemetry } from '../telemetry/safe-telemetry.js'
import type { TelemetryRequestInfo } from '../telemetry/telemetry.js'

export type NamedModel = Pick<ModelProvider, 'provider' | 'model' | 'endpoint'>

/** Starts measuring a request. Returns undefined if the run has no telemetry. */
export function measureRequest(
  { telemetry, clock }: AgentRuntime,
  { provider, model, endpoint }: NamedModel,
  request: ModelRequest,
  purpose: TelemetryRequestInfo['purpose'],
  { steps, attempt }: AgentContext,
): MeasuredRequest | undefined {
  return (
    telemetry &&
    new MeasuredRequest(telemetry, clock, {
      type: 'inference',
      purpose,
      step: steps + 1,
      attempt,
      fallback: 0,
      request,
      provider,
      model,
      endpoint: readEndpoint(endpoint),
      sentAt: clock.now(),
      waits: [],
      ...unknownOutcome,
    })
  )
}

const unknownOutcome = {
  firstChunkAt: null,
  response: null,
  responseId: null,
  failure: null,
  usage: null,
}

class MeasuredRequest {
  readonly #telemetry: SafeTelemetry
  readonly #clock: Clock
  #info: TelemetryRequestInfo

  constructor(telemetry: SafeTelemetry, clock: Clock, info: TelemetryRequestInfo) {
    this.#telemetry = telemetry
    this.#clock = clock
    this.#info = info
  }

  around<Value>(work: () => Value): Value {
    return this.#telemetry.around(this.#info, work)
  }

  noteChunk(): void {
    this.#info.firstChunkAt ??= this.#clock.now()
  }

  /** Records that the request waits for a limiter. Null ends the wait. */
  noteWait(wait: { limiter: string } | null): void {
    const { waits } = this.#info
    const now = this.#clock.now()
    if (wait !== null) waits.push({ limiter: wait.limiter, since: now, until: null })
    else for (const one of waits) one.until ??= now
  }

  /** Switches to another model. If the previous model failed, this is a new request. */
  switchModel(next: NamedModel, givenUp: { failure: ModelFailure; spent: Usage | null } | null): void {
    const { provider, model } = next
    const endpoint = readEndpoint(next.endpoint)
    if (givenUp === null) Object.assign(this.#info, { provider, model, endpoint })
    else {
      const info = Object.assign(this.#info, { failure: givenUp.failure, usage: givenUp.spent })
      const fallback = info.fallback + 1
      const sentAt = this.#clock.now()
      this.#info = { ...info, ...unknownOutcome, fallback, provider, model, endpoint, sentAt, waits: [] }
    }
    this.around(() => undefined)
  }

  /** Records the response. The provider's response id is passed only to telemetry. */
  noteResponse(response: ModelResponse, { id }: ModelResponse): void {
    this.#info.response = response
    this.#info.responseId = typeof id === 'string' && id !== '' ? truncate(scrubEvidence(id), 200) : null
  }
}

/** The endpoint reported by the provider, or null if its host or port is invalid. */
function readEndpoint(endpoint: NamedModel['endpoint']): TelemetryRequestInfo['endpoint'] {
  const { host, port }: { host?: unknown; port?: unknown } = endpoint ?? {}
  if (typeof host !== 'string' || !/^[\w.:-]{1,255}$/.test(host)) return null
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536
    ? { host, port }
    : null
}
