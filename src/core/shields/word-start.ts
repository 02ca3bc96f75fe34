/**
 * Where a word can begin, as the source of a pattern: not behind one of its own characters and not right behind a
 * backslash, but behind an escape such as \n or \u0020, because arguments of tools are JSON text.
 */
export function createWordStart(characters = String.raw`\w\-`): string {
  return String.raw`(?:(?<![${characters}\\])|(?<=\\[bfnrt])|(?<=\\u[\da-fA-F]{4}))`
}
