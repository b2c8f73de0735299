-- Two documents never share a passage id: a corpus line whose id another document of the collection has gets its document's number behind it.
UPDATE chunk SET passage = passage || '~' || document_id
WHERE id IN (
  SELECT c.id FROM chunk c JOIN document d ON d.id = c.document_id
  WHERE d.external_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM chunk o JOIN document p ON p.id = o.document_id
    WHERE o.passage = c.passage AND o.document_id < c.document_id AND p.collection = d.collection
  )
);
