-- Which of these sessions have turns that match a query. `started` and `ended` are bits of `kinds`.
SELECT json_group_array(s.number)
FROM sessions AS s
WHERE s.number IN (SELECT value FROM json_each(:numbers))
  AND (:status IS NULL OR :status = (
      SELECT CASE WHEN b.kinds & :ended THEN b.outcome ELSE 'running' END
      FROM batches AS b
      WHERE b.session = s.number AND b.kinds & (:started | :ended)
      ORDER BY b.first DESC LIMIT 1
  ))
  AND (:provider IS NULL OR EXISTS (
      SELECT 1 FROM batches AS b
      WHERE b.session = s.number AND b.kinds & :started AND b.provider = :provider
  ))
  AND (:model IS NULL OR EXISTS (
      SELECT 1 FROM batches AS b
      WHERE b.session = s.number AND (
          (b.kinds & :started AND :model IN (b.model, b.asked))
          OR (b.kinds & :ended AND :model = b.served)
      )
  ))
