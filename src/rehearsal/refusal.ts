/** Why a request gets no turn: an HTTP status and an error object like OpenAI's. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | null

  constructor(status: number, code: string, message: string, param: string | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
  }

  get body(): { error: { message: string; type: string; param: string | null; code: string } } {
    const { message, param, code } = this
    return { error: { message, type: 'invalid_request_error', param, code } }
  }
}
