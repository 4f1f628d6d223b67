/** Public face of the files pack. */
export { deleteFile, downloadFile, FileMissing, UploadMissing, UploadObject, UploadsFailed, uploadFile } from './contract.ts'
export * from './service.ts'
