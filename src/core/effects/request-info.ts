import { truncate } from '../../../guards/lib/cut.js'
import { scrubEvidence } from '../../../guards/lib/evidence.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { ModelProvider, ModelRequest } from '../models/provider.js'
import type { TelemetryRequestInfo } from '../telemetry/telemetry.js'

type NamedModel = Pick<ModelProvider, 'provider' | 'model' | 'endpoint'>

/** A request as telemetry sees it, when it is sent. */
export function toRequestInfo(
  { provider, model, endpoint }: NamedModel,
  request: ModelRequest,
  purpose: TelemetryRequestInfo['purpose'],
  { steps, attempt }: AgentContext,
  sentAt: number,
): TelemetryRequestInfo {
  return {
    type: 'inference',
    purpose,
    step: steps + 1,
    attempt,
    fallback: 0,
    request,
    provider,
    model,
    endpoint: readEndpoint(endpoint),
    sentAt,
    firstChunkAt: null,
    response: null,
    responseId: null,
    failure: null,
    usage: null,
  }
}

/** The same request to another model: in place of one that is given up, or of the one that was thought of first. */
export function switchModelInfo(
  given: TelemetryRequestInfo,
  next: NamedModel,
  givenUp: { failure: ModelFailure; spent: Usage | null } | null,
  sentAt: number,
): TelemetryRequestInfo {
  const { provider, model } = next
  const endpoint = readEndpoint(next.endpoint)
  if (givenUp === null) return Object.assign(given, { provider, model, endpoint })
  given.failure = givenUp.failure
  given.usage = givenUp.spent
  const { fallback } = given
  const unknown = { firstChunkAt: null, response: null, responseId: null, failure: null, usage: null }
  return { ...given, ...unknown, fallback: fallback + 1, provider, model, endpoint, sentAt }
}

/**
 * The endpoint that the provider reports, checked: a host name or an address, and a port. Anything else becomes null.
 */
function readEndpoint(given: NamedModel['endpoint']): TelemetryRequestInfo['endpoint'] {
  const { host, port }: { host?: unknown; port?: unknown } = given ?? {}
  if (typeof host !== 'string' || !/^[\w.:-]{1,255}$/.test(host)) return null
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536
    ? { host, port }
    : null
}

/** Notes the response. Only telemetry gets the provider's id of it. */
export function noteResponse(
  given: TelemetryRequestInfo,
  response: ModelResponse,
  { id }: ModelResponse,
): void {
  given.response = response
  given.responseId = typeof id === 'string' && id !== '' ? truncate(scrubEvidence(id), 200) : null
}
