// Helpers of the AI SDK adapter that read steps and messages.
export const hasSpent =
  (most) =>
  ({ steps }) =>
    steps.reduce((sum, { usage }) => sum + (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0), 0) >= most

/** The requested approvals. */
export const requestsOf = (messages) =>
  messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.filter(({ type }) => type === 'tool-approval-request') : [],
  )

export function usageOf({ usage, steps }, isDocumented) {
  const parts = usage ? [usage] : isDocumented ? steps.map((step) => step.usage) : []
  if (parts.length === 0) return undefined
  const sum = (key) => parts.reduce((total, part) => total + (part[key] ?? Number.NaN), 0)
  return { input: sum('inputTokens'), output: sum('outputTokens') }
}
