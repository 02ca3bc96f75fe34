/**
 * Text from outside, made safe for a terminal: escape sequences and other control characters could move the cursor,
 * rename the window or fake a line of ours. Tabs and newlines stay.
 */
export function stripControls(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(controlCharacters, '')
}

// Bidirectional overrides too: they reorder what is read.
const controlCharacters = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu
