import type { ElicitationField } from '../../../machines/agent/run-result.js'

/** The values that a field may have, with their titles; undefined where it is no choice. */
export function listChoices({
  enum: values,
  enumNames,
  oneOf,
  items,
}: ElicitationField): { const: string; title: string }[] | undefined {
  const titled = oneOf ?? items?.anyOf
  if (titled) return titled
  return (values ?? items?.enum)?.map((value, i) => ({ const: value, title: enumNames?.[i] ?? value }))
}
