import { AttachmentError, type AttachmentErrorCode } from '../../../src/memory/attachments/attachment.js'

/** Waits for the AttachmentError of a load. */
export async function refusal(load: Promise<unknown>, code: AttachmentErrorCode): Promise<AttachmentError> {
  const error: unknown = await load.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(AttachmentError)
  expect(error).toMatchObject({ code })
  return error as AttachmentError
}
