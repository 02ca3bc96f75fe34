import { deflateSync } from 'node:zlib'

/** A PDF with one line of text per page. Bytes become the page's compressed content unchanged. */
export function tinyPdf(...pages: (string | Uint8Array)[]): Uint8Array {
  const font = 3
  const pageOf = (index: number) => font + 1 + 2 * index
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, index) => `${pageOf(index)} 0 R`).join(' ')}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...pages.flatMap((page, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents ${pageOf(index) + 1} 0 R /Resources << /Font << /F1 ${font} 0 R >> >> >>`,
      contentOf(page),
    ]),
  ]
  let file = '%PDF-1.7\n'
  const offsets = objects.map((object, index) => {
    const offset = file.length
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${file.indexOf('xref\n0')}\n%%EOF\n`
  return Buffer.from(file, 'latin1')
}

function contentOf(page: string | Uint8Array): string {
  const packed = typeof page === 'string' ? deflateSync(`BT /F1 12 Tf 20 200 Td (${page}) Tj ET`) : page
  const stream = Buffer.from(packed).toString('latin1')
  return `<< /Length ${stream.length} /Filter /FlateDecode >>\nstream\n${stream}\nendstream`
}
