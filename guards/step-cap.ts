/** Whether all steps of a run are used. A step is one accepted model response; null is no cap. */
export function isAtStepCap(steps: number, maxSteps: number | null): boolean {
  return maxSteps !== null && steps >= maxSteps
}

/** What the user reads. */
export function formatStepCapMessage(maxSteps: number): string {
  const used = maxSteps === 1 ? 'The one step of this run is' : `All ${maxSteps} steps of this run are`
  return `${used} used. Raise limits.maxSteps to let it go on for longer.`
}
