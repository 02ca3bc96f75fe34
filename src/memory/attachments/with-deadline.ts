import { abortable } from '../../core/models/openai/abortable.js'

/** Does `work` within `ms`; its signal aborts when the time is over or `outer` aborts, and it is waited for no longer. */
export async function withDeadline<Result>(
  ms: number,
  outer: AbortSignal,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const deadline = new AbortController()
  const timer = setTimeout(() => {
    deadline.abort(late())
  }, ms)
  try {
    return await abortable(AbortSignal.any([outer, deadline.signal]), ({ signal }) => work(signal))
  } finally {
    clearTimeout(timer)
  }
}
