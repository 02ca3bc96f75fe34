/** `gpt-5-mini-2025-08-07` and `gpt-5-mini-20250807` are releases of `gpt-5-mini`. */
export function stripReleaseDate(model: string): string {
  return model.replace(/-20\d{2}-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])$/, '')
}
